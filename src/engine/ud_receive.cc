// How a datagram queue pair receives (InfiniBand Architecture volume 1, sections 9.8.3 and 11.4.2.1): the Q_Key, a
// receive with room for the GRH and the payload, and the scattering. What does not fit is dropped and takes no receive
// with it.
#include <algorithm>
#include <cstring>

#include "engine/queue_pair.h"
#include "engine/sge_range.h"
#include "wire/infiniband_header.h"
#include "wire/network_header.h"

namespace verbena::engine {
namespace {

// Lays `bytes` down behind what was laid down before.
class Scatter {
 public:
  explicit Scatter(const MemoryPieces& target) noexcept : next_(target.parts.data()) {}

  // Requires: as much room is left.
  void skip(std::size_t count) noexcept {
    while (count != 0) count -= advance(count).size();
  }
  void write(std::span<const std::byte> bytes) noexcept {
    while (!bytes.empty()) {
      const std::span<std::byte> room = advance(bytes.size());
      std::memcpy(room.data(), bytes.data(), room.size());
      bytes = bytes.subspan(room.size());
    }
  }

 private:
  // The next bytes of one piece, at most `wanted`.
  std::span<std::byte> advance(std::size_t wanted) noexcept {
    if (offset_ == next_->size) {
      ++next_;
      offset_ = 0;
    }
    const std::span<std::byte> room = next_->bytes().subspan(offset_, std::min(wanted, next_->size - offset_));
    offset_ += room.size();
    return room;
  }

  const MemoryPiece* next_;
  std::size_t offset_ = 0;
};

// The GRH and the payload into the memory of the receive, which has room for them.
void write(const Envelope& envelope, std::size_t udp_payload_size, std::span<const std::byte> payload,
           const MemoryPieces& target) noexcept {
  const std::span<std::byte> first = target.parts[0].bytes();
  if (target.count == 1) {
    wire::write_grh(envelope, udp_payload_size, first.first<wire::kGrhSize>());
    std::copy(payload.begin(), payload.end(), first.begin() + wire::kGrhSize);
    return;
  }
  std::array<std::byte, wire::kGrhSize> grh;
  wire::write_grh(envelope, udp_payload_size, grh);
  Scatter scatter(target);
  scatter.write(grh);
  scatter.write(payload);
}

// The same on InfiniBand: without a GRH the forty bytes stay as they were.
void write_from_link(const Envelope& envelope, std::size_t size, std::span<const std::byte> payload,
                     const MemoryPieces& target) noexcept {
  Scatter scatter(target);
  if (envelope.link.has_grh) {
    std::array<std::byte, wire::kGrhSize> grh;
    wire::write_infiniband_grh(envelope, size, grh);
    scatter.write(grh);
  } else {
    scatter.skip(wire::kGrhSize);
  }
  scatter.write(payload);
}

// The same for an IPv4 header, as some devices do it.
void write_with_quirks(const Envelope& envelope, std::size_t udp_payload_size, std::span<const std::byte> payload,
                       const MemoryPieces& target, ReceiveQuirks quirks) noexcept {
  constexpr std::size_t kFront = wire::kGrhSize - wire::kIpv4Size;
  constexpr std::size_t kChecksum = kFront + 10;
  std::array<std::byte, wire::kGrhSize> grh;
  wire::write_grh(envelope, udp_payload_size, grh);
  if (quirks.grh_checksum_zero) grh[kChecksum] = grh[kChecksum + 1] = std::byte{0};
  Scatter scatter(target);
  if (quirks.grh_dirty) {
    scatter.skip(kFront);
    scatter.write(std::span(grh).subspan(kFront));
  } else {
    scatter.write(grh);
  }
  scatter.write(payload);
}

}  // namespace

Drop QueuePair::receive_ud(const wire::Packet& packet, const Envelope& envelope,
                           std::size_t udp_payload_size) noexcept {
  if (packet.deth.qkey != qkey_) return Drop::kQkeyMismatch;
  if (packet.payload.size() > mtu_) return Drop::kPayloadTooLong;
  const std::size_t needed = wire::kGrhSize + packet.payload.size();
  if (!has_shared_receives()) {
    if (receive_queue_.empty()) return Drop::kNoReceiveRequest;
    const ReceiveRequest request = receive_queue_.front();
    if (request.length() < needed) return Drop::kReceiveTooSmall;
    receive_queue_.pop();  // the slot stays as it is until the next post
    return deliver_ud(packet, envelope, udp_payload_size, request);
  }
  TakenReceive taken;
  switch (shared_receives_->take(needed, taken)) {
    case Take::kEmpty:
      return Drop::kNoReceiveRequest;
    case Take::kTooSmall:
      return Drop::kReceiveTooSmall;
    case Take::kTaken:
      break;
  }
  return deliver_ud(packet, envelope, udp_payload_size, {taken.wr_id, taken.list()});
}

Drop QueuePair::deliver_ud(const wire::Packet& packet, const Envelope& envelope, std::size_t udp_payload_size,
                           const ReceiveRequest& request) noexcept {
  MemoryPieces target;
  const std::size_t size = wire::kGrhSize + packet.payload.size();
  const MemoryFault fault = resolve_range(*memory_, *domain_, request.sges, 0, size, kLocalWrite, target);
  if (fault != MemoryFault::kNone) [[unlikely]]
    return fail_receive(request.wr_id, fault);
  if (envelope.is_infiniband()) {
    write_from_link(envelope, udp_payload_size, packet.payload, target);
  } else if (quirks_.any() && wire::is_ipv4(envelope)) [[unlikely]] {
    write_with_quirks(envelope, udp_payload_size, packet.payload, target, quirks_);
  } else {
    write(envelope, udp_payload_size, packet.payload, target);
  }

  Completion completion;
  completion.wr_id = request.wr_id;
  completion.opcode = WcOpcode::kReceive;
  completion.byte_length = static_cast<std::uint32_t>(size);
  completion.qp_number = qpn_.value();
  completion.source_qp = packet.deth.source_qpn.value();
  if (!envelope.is_infiniband() || envelope.link.has_grh) completion.flags = kWcGrh;
  if (packet.bth.opcode == wire::Opcode::kUdSendOnlyImm) {
    completion.immediate = packet.imm_dt.network_order;
    completion.flags |= kWcWithImmediate;
  }
  completion.solicited = packet.bth.solicited;
  describe_path(envelope, completion);
  return receive_completions_->push(completion, receive_place()) ? Drop::kNone : Drop::kCqOverrun;
}

// RoCE has no service level in a packet; ConnectX tells here what kind of header stands in front of the payload, and
// UCX looks for it.
void QueuePair::describe_path(const Envelope& envelope, Completion& completion) const noexcept {
  const std::uint8_t kind = envelope.destination.is_ipv4_mapped() ? kHeaderIsIpv4 : kHeaderIsIpv6;
  completion.service_level = envelope.is_infiniband() ? envelope.link.service_level : kind;
  if (quirks_.wc_sl_unfilled) completion.service_level = 0;
  completion.source_lid = envelope.link.source_lid;
  completion.dlid_path_bits = envelope.link.path_bits;
}

}  // namespace verbena::engine
