// A simulated host: a queue pair on the engine, driven as a device drives it, and its place in the network.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/drop.h"
#include "engine/testing/workbench.h"
#include "sim/network.h"

namespace verbena::sim {

class Node {
 public:
  static constexpr std::uint32_t kQpn = 100;
  static constexpr std::uint32_t kSlot = 1024;  // of memory, for each receive and each send
  static constexpr std::uint32_t kReceives = 16;

  Node(std::uint8_t number, Network& network)
      : host_(number, 512), qp_(host_.config(kQpn + number)), network_(network) {
    for (const std::size_t index : {std::size_t{1}, std::size_t{2}}) {
      network.connect(host_.gid(index), [this](const Datagram& datagram, Instant now) { on_datagram(datagram, now); });
    }
    engine::testing::bring_to(qp_, engine::QpState::kReadyToSend, host_.port());
    for (std::uint32_t i = 0; i < kReceives; ++i) post_receive(i);
  }

  engine::QueuePair& queue_pair() { return qp_; }
  engine::testing::Host& host() { return host_; }
  std::uint64_t drops(Drop drop) const { return drops_[static_cast<std::size_t>(drop)]; }
  std::uint64_t copies_sent() const { return copies_; }

  // Posts a send of the bytes in slot `slot` of the memory; an errno.
  int post_send(Node& peer, std::uint8_t gid_index, std::uint64_t wr_id, std::uint32_t slot, std::uint32_t length,
                std::uint32_t flags) {
    const engine::AddressHandle address = host_.address_of(peer.host_, gid_index);
    const engine::Sge sge = host_.sge(send_offset(slot), length);
    engine::SendRequest request;
    request.wr_id = wr_id;
    request.flags = flags;
    request.sges = {&sge, 1};
    request.address = &address;
    request.remote_qpn = peer.qp_.qpn().value();
    request.remote_qkey = engine::testing::kQkey;
    return qp_.post_send(request);
  }
  std::span<std::byte> send_memory(std::uint32_t slot) { return host_.bytes().subspan(send_offset(slot), kSlot); }

  // Puts what may go now on the network; `budget` is what the transport takes before it is full.
  void transmit(Instant now, std::size_t budget) {
    std::array<engine::Transmit, 8> batch;
    std::size_t count = 0;
    while (count < batch.size() && qp_.poll_transmit(now, batch[count])) ++count;
    const std::size_t taken = std::min(count, budget);
    for (std::size_t i = 0; i < taken; ++i) {
      copies_ +=
          static_cast<std::uint64_t>(network_.send({*batch[i].envelope, engine::testing::flatten(batch[i])}, now));
    }
    qp_.on_transmitted(taken);
    if (taken < count) qp_.rewind_transmit();
  }

  struct Received {
    engine::Completion completion;
    std::vector<std::byte> payload;
  };
  // The next received datagram; its receive is posted again.
  std::optional<Received> poll_received() {
    const auto completion = host_.receive_completions().poll();
    if (!completion) return std::nullopt;
    Received received{*completion, {}};
    if (completion->status == engine::WcStatus::kSuccess) {
      const auto slot = host_.bytes().subspan(completion->wr_id * kSlot, completion->byte_length);
      received.payload.assign(slot.begin() + wire::kGrhSize, slot.end());
      post_receive(static_cast<std::uint32_t>(completion->wr_id));
    }
    return received;
  }

 private:
  static std::size_t send_offset(std::uint32_t slot) { return std::size_t{kReceives + slot} * kSlot; }

  void post_receive(std::uint32_t slot) {
    const engine::Sge sge = host_.sge(std::size_t{slot} * kSlot, kSlot);
    qp_.post_receive(slot, {&sge, 1});
  }
  void on_datagram(const Datagram& datagram, Instant now) {
    const Drop drop = engine::testing::deliver(qp_, datagram.bytes, datagram.envelope, now);
    ++drops_[static_cast<std::size_t>(drop)];
  }

  engine::testing::Host host_;
  engine::QueuePair qp_;
  Network& network_;
  std::uint64_t copies_ = 0;
  std::array<std::uint64_t, kDropCount> drops_{};
};

}  // namespace verbena::sim
