// One end of a connection on the bench: the test is the other end, packet by packet, and the network between.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "engine/testing/workbench.h"

namespace verbena::engine::testing {

// A packet that left, decoded. The payload is a copy.
struct SentPacket {
  wire::Packet packet;
  std::vector<std::byte> bytes;
  std::vector<std::byte> payload;

  wire::Opcode opcode() const { return packet.bth.opcode; }
  std::uint32_t psn() const { return packet.bth.psn.value(); }
  std::uint8_t syndrome() const { return packet.aeth.syndrome.value(); }
};

class EventCounter final : public TransportObserver {
 public:
  void on_transport_event(TransportEvent event) noexcept override { ++counts_[static_cast<std::size_t>(event)]; }
  int count(TransportEvent event) const { return counts_[static_cast<std::size_t>(event)]; }

 private:
  std::array<int, 32> counts_{};
};

class ConnectionBench {
 public:
  static constexpr std::uint32_t kOwnQpn = 0x20001;
  static constexpr std::uint32_t kPeerQpn = 0x30002;
  static constexpr std::uint32_t kMtu = 256;
  static constexpr std::uint32_t kSendPsn = 0xfffffe;  // so that the circle's seam is crossed
  static constexpr std::uint32_t kReceivePsn = 0xfffffd;
  static constexpr AccessFlags kAll =
      kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic | kFlushGlobal | kFlushPersistent;

  // What modify() is told; to be changed before bring_up().
  QpAttributes attributes;

  explicit ConnectionBench(QpType type = QpType::kRc, std::uint32_t window = 128, std::uint32_t depth = 64,
                           ReceiveSource* shared = nullptr, WindowBinder* windows = nullptr, ReceiveQuirks quirks = {})
      : host_(1, kMtu), peer_(2, kMtu) {
    granted_ = host_.region_of(host_.bytes().data() + kGrantedAt, kGrantedSize, kAll);
    static_cast<void>(host_.memory().insert(granted_));
    QpConfig config = host_.config(kOwnQpn, type);
    if (type != QpType::kXrcReceive) config.capabilities = {depth, depth, 4, 4, 64};
    config.observer = &events_;
    config.shared_receives = shared;
    config.windows = windows;
    config.quirks = quirks;
    qp_ = std::make_unique<QueuePair>(config);
    qp_->set_window(window);
    attributes.port = 1;
    attributes.path_mtu = 1;
    attributes.access = kAll;
    attributes.destination_qpn = kPeerQpn;
    attributes.address = host_.address_of(peer_).vector;
    attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4;
    attributes.min_rnr_timer = 12;  // 640 us
    attributes.timeout = 8;         // about a millisecond
    attributes.retry_count = 3;
    attributes.rnr_retry = 3;
    attributes.receive_psn = kReceivePsn;
    attributes.send_psn = kSendPsn;
  }

  ConnectionBench& bring_up(QpState last = QpState::kReadyToSend) {
    for (const QpState to : {QpState::kInit, QpState::kReadyToReceive, QpState::kReadyToSend}) {
      const AttrMask required = edge_of(qp_->type(), qp_->state(), to).required;
      const Status status = move_to(*qp_, to, host_.port(), required, attributes);
      if (!status) throw std::invalid_argument(status.error().message);
      if (to == last) break;
    }
    return *this;
  }
  Status go(QpState to, AttrMask more = 0) { return move_to(*qp_, to, host_.port(), more, attributes); }

  QueuePair& qp() { return *qp_; }
  Host& host() { return host_; }
  const EventCounter& events() const { return events_; }
  static constexpr std::size_t kGrantedAt = 0x8000;
  static constexpr std::size_t kGrantedSize = 0x4000;
  std::span<std::byte> granted() { return host_.bytes().subspan(kGrantedAt, kGrantedSize); }
  MemoryRegion& granted_region() { return granted_; }
  std::uint64_t granted_address() const { return granted_.address; }
  MemoryKey rkey() const { return granted_.key; }

  // --- this end sends
  SendRequest request(SendOpcode opcode, std::uint32_t length, std::uint64_t wr_id = 0,
                      std::uint32_t flags = kSendSignaled) {
    SendRequest made;
    made.wr_id = wr_id != 0 ? wr_id : ++last_wr_id_;
    made.opcode = opcode;
    made.flags = flags;
    pieces_.push_back(host_.sge(0, length));
    if (pieces_.size() > kPiecesKept) pieces_.pop_front();  // those were posted long ago
    made.sges = {&pieces_.back(), 1};
    made.remote_address = 0x1000;
    made.rkey = MemoryKey(0x4711);
    made.shared_queue = kSharedQueue;
    return made;
  }
  int post(SendOpcode opcode, std::uint32_t length = 16, std::uint64_t wr_id = 0, std::uint32_t flags = kSendSignaled) {
    return qp_->post_send(request(opcode, length, wr_id, flags));
  }
  // All that may be sent now, and is.
  std::vector<SentPacket> requests() {
    std::vector<SentPacket> sent;
    Transmit packet;
    while (qp_->poll_transmit(now, packet)) {
      sent.push_back(decoded(packet));
      qp_->on_transmitted(1);
    }
    return sent;
  }
  Drop answer(wire::Syndrome syndrome, std::uint32_t psn, std::uint32_t msn = 0) {
    wire::Packet packet = incoming(wire::Opcode::kRcAcknowledge, psn);
    packet.aeth = {syndrome, msn};
    return respond(packet);
  }
  Drop acknowledge(std::uint32_t psn, std::uint8_t credits = 0x1f, std::uint32_t msn = 0) {
    return answer(wire::Syndrome::ack(credits), psn, msn);
  }
  Drop read_response(wire::Opcode opcode, std::uint32_t psn, std::span<const std::byte> payload) {
    wire::Packet packet = incoming(opcode, psn);
    packet.aeth = {wire::Syndrome::ack(0x1f), 0};
    packet.payload = payload;
    return respond(packet);
  }
  Drop atomic_response(std::uint32_t psn, std::uint64_t original) {
    wire::Packet packet = incoming(wire::Opcode::kRcAtomicAcknowledge, psn);
    packet.aeth = {wire::Syndrome::ack(0x1f), 0};
    packet.atomic_ack_eth.original = original;
    return respond(packet);
  }
  Drop respond(const wire::Packet& packet) {
    const Drop drop = qp_->on_response(packet, envelope(), now);
    qp_->settle_receive();
    return drop;
  }
  // Lets time pass until the next timer, and runs it. False where there is none.
  bool run_timer() {
    const auto due = qp_->next_timeout();
    if (!due) return false;
    now = std::max(now, *due);
    qp_->on_timeout(now);
    qp_->settle_receive();
    return true;
  }
  std::optional<Completion> sent() { return host_.send_completions().poll(); }

  // --- this end receives
  int post_receive(std::uint64_t wr_id, std::uint32_t length) {
    const Sge sge = host_.sge(0x4000, length);
    if (qp_->type() == QpType::kXrcReceive) return host_.shared_receives().post(wr_id, {&sge, 1});
    return qp_->post_receive(wr_id, {&sge, 1});
  }
  // `opcode`: of RC; the same of XRC where the queue pair is of that.
  wire::Packet incoming(wire::Opcode opcode, std::uint32_t psn) const {
    wire::Packet packet;
    packet.bth.opcode = of_its_transport(opcode);
    packet.xrceth.srqn = kSharedQueue;
    packet.bth.destination_qpn = Qpn(kOwnQpn);
    packet.bth.psn = Psn(psn);
    packet.bth.ack_request = true;
    return packet;
  }
  wire::Packet incoming_write(wire::Opcode opcode, std::uint32_t psn, std::uint32_t length, std::size_t offset = 0) {
    wire::Packet packet = incoming(opcode, psn);
    packet.reth = {granted_.address + offset, granted_.key, length};
    return packet;
  }
  Drop receive(const wire::Packet& packet) { return receive_from(packet, envelope()); }
  Drop receive_from(const wire::Packet& packet, const Envelope& from) {
    const Drop drop = qp_->on_packet(packet, from, 64, now);
    qp_->settle_send();
    return drop;
  }
  std::vector<SentPacket> responses() {
    std::vector<SentPacket> answers;
    Transmit packet;
    while (qp_->poll_response(now, packet)) {
      answers.push_back(decoded(packet));
      qp_->on_responded(1);
    }
    return answers;
  }
  std::optional<Completion> received() { return host_.receive_completions().poll(); }
  Envelope envelope() const {
    Envelope envelope;
    envelope.source = peer_.gid(1);
    envelope.destination = host_.gid(1);
    return envelope;
  }

  Instant now{1'000'000'000};

  wire::Opcode of_its_transport(wire::Opcode opcode) const noexcept {
    const bool is_xrc = qp_->type() == QpType::kXrcSend || qp_->type() == QpType::kXrcReceive;
    if (!is_xrc || wire::row_of(opcode).transport != wire::Transport::kRc) return opcode;
    return static_cast<wire::Opcode>(static_cast<unsigned>(opcode) | static_cast<unsigned>(wire::Transport::kXrc));
  }

 private:
  static SentPacket decoded(const Transmit& transmit) {
    SentPacket sent;
    sent.bytes = flatten(transmit);
    if (wire::decode_packet(sent.bytes, false, sent.packet) != Drop::kNone) throw std::logic_error("a broken packet");
    sent.payload.assign(sent.packet.payload.begin(), sent.packet.payload.end());
    sent.packet.payload = sent.payload;
    return sent;
  }

  static constexpr std::size_t kPiecesKept = 64;

  Host host_;
  Host peer_;
  MemoryRegion granted_;
  EventCounter events_;
  std::unique_ptr<QueuePair> qp_;
  std::deque<Sge> pieces_;
  std::uint64_t last_wr_id_ = 0;
};

inline std::vector<std::byte> pattern(std::size_t size, std::uint8_t seed = 1) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(seed + i * 7);
  return bytes;
}

}  // namespace verbena::engine::testing
