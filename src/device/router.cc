#include "device/router.h"

#include <algorithm>
#include <array>
#include <optional>

#include "device/infiniband_frame.h"
#include "device/wire_frame.h"

namespace verbena::device {
namespace {

constexpr std::size_t kWireBatch = 16;
// Nobody at an InfiniBand port heeds a mark, so what carries its packets asks for none (RFC 3168, section 5).
constexpr unsigned kEcnBits = 0x3;

// A frame is large, and most sends are of one packet: only those that are used are made.
using FramesOnStack = std::array<std::optional<InfinibandFrame>, kWireBatch>;

bool same_way(const transport::Outgoing& a, const transport::Outgoing& b) noexcept {
  return a.slot == b.slot && a.envelope->destination == b.envelope->destination &&
         a.envelope->source == b.envelope->source &&
         a.envelope->link.destination_lid == b.envelope->link.destination_lid &&
         a.envelope->link.port == b.envelope->link.port;
}

bool is_here(const Routes& routes, const Envelope& envelope) noexcept {
  if (!envelope.is_infiniband()) return !envelope.destination.is_multicast() && routes.is_local(envelope.destination);
  const std::uint16_t lid = envelope.link.destination_lid;
  return !wire::is_multicast_lid(lid) && is_lid_here(routes, lid);
}

}  // namespace

transport::SendResult Router::send(std::span<const transport::Outgoing> batch, Instant now) noexcept {
  const Routes& routes = *routes_.load(std::memory_order_acquire);  // partner: the release store in Runtime
  transport::SendResult result;
  while (result.taken < batch.size()) {
    const auto rest = batch.subspan(result.taken);
    const bool infiniband = rest[0].envelope->is_infiniband();
    const std::size_t most = infiniband ? std::min(rest.size(), kWireBatch) : rest.size();
    std::size_t length = 1;
    while (length < most && same_way(rest[length], rest[0])) ++length;
    const auto run = rest.first(length);

    transport::SendResult sent;
    bool by_wire = true;
    if (use_shared_memory_ && is_here(routes, *rest[0].envelope)) {
      const auto shared = infiniband ? send_shared(run, routes, now) : exchange_.send(rest[0].slot, run, now);
      by_wire = shared.reach == transport::Reach::kForeign;
      sent = shared.sent;
      if (shared.reach == transport::Reach::kAbsent) {
        counters_.count(Drop::kPeerGone, length);
        sent = {.taken = length, .full = false};
      } else if (!by_wire) {
        counters_.add(Traffic::kSentShared, sent.taken);
      }
    }
    if (by_wire) sent = infiniband ? send_carried(run, routes, now) : send_wire(run, routes, now);
    result.taken += sent.taken;
    if (sent.full || sent.taken < length) {
      result.full = true;
      break;
    }
  }
  return result;
}

// Packets of InfiniBand, at most kWireBatch, through shared memory.
transport::ExchangeResult Router::send_shared(std::span<const transport::Outgoing> run, const Routes& routes,
                                              Instant now) noexcept {
  FramesOnStack frames;
  std::array<transport::Outgoing, kWireBatch> sealed;
  for (std::size_t i = 0; i < run.size(); ++i) {
    auto& frame = frames[i].emplace();
    const auto& whole = run[i].has_icrc ? run[i] : frame.seal(run[i], routes, false);
    sealed[i] = frame.address(whole, kInfinibandEnvelope);
  }
  return exchange_.send(run[0].slot, std::span(sealed).first(run.size()), now);
}

// The same, in UDP.
transport::SendResult Router::send_carried(std::span<const transport::Outgoing> run, const Routes& routes,
                                           Instant now) noexcept {
  const Carrier by = find_carrier(routes, *run[0].envelope);
  if (by.udp_port == nullptr) {
    counters_.count(Drop::kUdpNotOpen, run.size());
    return {.taken = run.size(), .full = false};
  }
  const Envelope envelope{.source = by.udp_port->address(),
                          .destination = by.destination,
                          .source_port = wire::kInfinibandUdpPort,
                          .traffic_class = static_cast<std::uint8_t>(run[0].envelope->traffic_class & ~kEcnBits)};
  FramesOnStack frames;
  std::array<transport::Outgoing, kWireBatch> sealed;
  for (std::size_t i = 0; i < run.size(); ++i) {
    auto& frame = frames[i].emplace();
    const auto& whole = run[i].has_icrc ? run[i] : frame.seal(run[i], routes, true);
    sealed[i] = frame.address(whole, envelope);
  }
  const auto sent = by.udp_port->send(std::span(sealed).first(run.size()), now);
  counters_.add(Traffic::kSentUdp, sent.taken);
  return sent;
}

transport::SendResult Router::send_wire(std::span<const transport::Outgoing> run, const Routes& routes,
                                        Instant now) noexcept {
  auto* udp_port = routes.udp_port_of(run[0].envelope->source);
  if (udp_port == nullptr) {
    const bool ours = routes.is_local(run[0].envelope->source);  // else the address has just gone
    counters_.count(ours ? Drop::kUdpNotOpen : Drop::kNoRoute, run.size());
    return {.taken = run.size(), .full = false};
  }
  std::array<WireFrame, kWireBatch> frames;
  std::array<transport::Outgoing, kWireBatch> sealed;
  transport::SendResult result;
  while (result.taken < run.size() && !result.full) {
    const auto part = run.subspan(result.taken, std::min(kWireBatch, run.size() - result.taken));
    for (std::size_t i = 0; i < part.size(); ++i) {
      sealed[i] = part[i].has_icrc ? part[i] : frames[i].seal(part[i], udp_port);
    }
    const auto sent = udp_port->send(std::span(sealed).first(part.size()), now);
    counters_.add(Traffic::kSentUdp, sent.taken);
    result.taken += sent.taken;
    result.full = sent.full || sent.taken < part.size();
  }
  return result;
}

}  // namespace verbena::device
