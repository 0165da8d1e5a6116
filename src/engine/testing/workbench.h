// What a queue pair needs around it, for tests, fuzzing and benchmarks: a domain, registered memory, completion queues
// and a port with addresses of both families.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/instant.h"
#include "engine/address_handle.h"
#include "engine/completion_queue.h"
#include "engine/memory_table.h"
#include "engine/port_view.h"
#include "engine/protection_domain.h"
#include "engine/queue_pair.h"
#include "engine/shared_receive_queue.h"
#include "engine/xrc_directory.h"
#include "wire/network_header.h"
#include "wire/packet.h"

namespace verbena::engine::testing {

class QueueSink final : public CompletionSink {
 public:
  explicit QueueSink(std::uint32_t capacity = 1024) : queue_(capacity) {}
  bool push(const Completion& completion, Place place) noexcept override {
    return queue_.push(completion, place).stored;
  }

  bool overrun() const noexcept override { return queue_.overrun(); }

  CompletionQueue& queue() noexcept { return queue_; }
  std::optional<Completion> poll() noexcept {
    Completion one;
    if (queue_.poll({&one, 1}) == 0) return std::nullopt;
    return one;
  }

 private:
  CompletionQueue queue_;
};

class QueueSource final : public ReceiveSource {
 public:
  QueueSource(std::uint32_t capacity, std::uint32_t max_sge) : queue_(capacity, max_sge) {}
  Take take(std::uint64_t length, TakenReceive& taken) noexcept override { return queue_.take(length, taken); }
  SharedReceiveQueue& queue() noexcept { return queue_; }

 private:
  SharedReceiveQueue queue_;
};

// An XRC domain. Not thread-safe.
class QueueDirectory final : public XrcDirectory {
 public:
  bool find(std::uint32_t number, XrcTarget& target) const noexcept override {
    const auto found = targets_.find(number);
    if (found == targets_.end()) return false;
    target = found->second;
    return true;
  }
  // In the place of what had the number.
  void add(std::uint32_t number, XrcTarget target) {
    target.identity = ++last_identity_;
    targets_[number] = target;
  }
  void remove(std::uint32_t number) { targets_.erase(number); }

 private:
  std::map<std::uint32_t, XrcTarget> targets_;
  std::uint64_t last_identity_ = 0;
};

inline constexpr std::uint32_t kQkey = 0x11223344;
inline constexpr std::uint32_t kSharedQueue = 0x20042;  // the number of a host's shared receive queue of XRC

// A host: one port, one domain, one piece of registered memory.
class Host {
 public:
  static constexpr std::size_t kMemory = 1U << 16;

  explicit Host(std::uint8_t number, std::uint32_t mtu = 1024) : bytes_(kMemory), memory_(1024, {number, 7}), gids_(4) {
    gids_[0].gid.bytes = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number};
    gids_[1].gid = Gid::from_ipv4(0x0a000000U | number);
    gids_[2].gid.bytes = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number};
    port_.mtu = mtu;
    region_ = region_of(bytes_.data(), bytes_.size(), kLocalWrite);
    static_cast<void>(memory_.insert(region_));
    xrc_.add(kSharedQueue, xrc_target());
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // Not yet in the table.
  MemoryRegion region_of(const void* at, std::size_t size, AccessFlags access) const {
    const auto address = reinterpret_cast<std::uint64_t>(at);
    return {&domain_, address, size, address, access, {}};
  }

  // What is modified from here on is on an InfiniBand port.
  void put_on_infiniband(std::uint16_t lid, std::uint8_t lmc) noexcept {
    port_.link_layer = LinkLayer::kInfiniband;
    port_.lid = lid;
    port_.lmc = lmc;
  }
  void set_pkeys(std::span<const std::uint16_t> pkeys) noexcept { port_.pkeys = pkeys; }
  const PortView& port() noexcept {
    port_.gids = gids_;
    return port_;
  }
  ProtectionDomain& domain() noexcept { return domain_; }
  MemoryTable& memory() noexcept { return memory_; }
  QueueSink& send_completions() noexcept { return send_completions_; }
  QueueSink& receive_completions() noexcept { return receive_completions_; }
  // An XRC domain, with one queue, whose completions are the receive completions.
  QueueDirectory& xrc() noexcept { return xrc_; }
  SharedReceiveQueue& shared_receives() noexcept { return shared_receives_.queue(); }
  XrcTarget xrc_target() noexcept {
    return {{&domain_, &memory_, nullptr}, &shared_receives_, &receive_completions_, 0};
  }
  std::span<std::byte> bytes() noexcept { return bytes_; }
  std::uint32_t lkey() const noexcept { return region_.key.value(); }
  const Gid& gid(std::size_t index) const noexcept { return gids_[index].gid; }

  // An SGE for bytes of the host's memory.
  Sge sge(std::size_t offset, std::uint32_t length) const noexcept {
    return {reinterpret_cast<std::uint64_t>(bytes_.data()) + offset, length, lkey()};
  }

  QpConfig config(std::uint32_t qpn, QpType type = QpType::kUd) noexcept {
    QpConfig config;
    config.qpn = Qpn(qpn);
    config.type = type;
    config.domain = &domain_;
    config.memory = &memory_;
    config.send_completions = &send_completions_;
    config.receive_completions = &receive_completions_;
    config.capabilities = {16, 16, 4, 4, 64};
    if (type != QpType::kXrcReceive) return config;
    config.domain = nullptr;
    config.send_completions = config.receive_completions = nullptr;
    config.capabilities = {};
    config.xrc = &xrc_;
    return config;
  }

  // Requires: both hosts have a GID at `index`.
  AddressHandle address_of(const Host& peer, std::uint8_t index = 1) noexcept {
    AddressVector vector;
    vector.destination = peer.gid(index);
    vector.sgid_index = index;
    vector.is_global = true;
    vector.port = 1;
    return *validate(vector, port(), &domain_);
  }

 private:
  std::vector<std::byte> bytes_;
  ProtectionDomain domain_{1};
  MemoryTable memory_;
  MemoryRegion region_;
  std::vector<GidEntry> gids_;
  PortView port_;
  QueueSink send_completions_;
  QueueSink receive_completions_;
  QueueSource shared_receives_{64, 4};
  QueueDirectory xrc_;
};

// Walks a UD queue pair up to `state`, which is one of INIT, RTR and RTS.
inline bool bring_to(QueuePair& qp, QpState state, const PortView& port, std::uint32_t qkey = kQkey,
                     std::uint32_t send_psn = 0) {
  QpAttributes attributes;
  attributes.port = 1;
  attributes.qkey = qkey;
  attributes.send_psn = send_psn;
  attributes.state = QpState::kInit;
  if (!qp.modify(attributes, kAttrState | kAttrPkeyIndex | kAttrPort | kAttrQkey, port)) return false;
  if (state == QpState::kInit) return true;
  attributes.state = QpState::kReadyToReceive;
  if (!qp.modify(attributes, kAttrState, port)) return false;
  if (state == QpState::kReadyToReceive) return true;
  attributes.state = QpState::kReadyToSend;
  return qp.modify(attributes, kAttrState | kAttrSendPsn, port).has_value();
}

inline Status move_to(QueuePair& qp, QpState state, const PortView& port, AttrMask more = 0,
                      QpAttributes attributes = {}) {
  attributes.state = state;
  return qp.modify(attributes, kAttrState | more, port);
}

// The bytes of a packet as the network carries them, without ICRC.
inline std::vector<std::byte> flatten(const Transmit& packet) {
  std::vector<std::byte> bytes;
  for (const auto part : packet.list()) bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

// Decodes and hands over, as a device does.
inline Drop deliver(QueuePair& qp, std::span<const std::byte> bytes, const Envelope& envelope, Instant now = {}) {
  wire::Packet packet;
  const Drop drop = wire::decode_packet(bytes, false, packet);
  if (drop != Drop::kNone) return drop;
  return qp.on_packet(packet, envelope, bytes.size() + wire::kIcrcSize, now);
}

}  // namespace verbena::engine::testing
