#include "device/router.h"

#include <algorithm>
#include <array>

#include "device/wire_frame.h"

namespace verbena::device {
namespace {

constexpr std::size_t kWireBatch = 16;

bool same_way(const transport::Outgoing& a, const transport::Outgoing& b) noexcept {
  return a.slot == b.slot && a.envelope->destination == b.envelope->destination &&
         a.envelope->source == b.envelope->source;
}

}  // namespace

transport::SendResult Router::send(std::span<const transport::Outgoing> batch, Instant now) noexcept {
  const Routes& routes = *routes_.load(std::memory_order_acquire);  // partner: the release store in Runtime
  transport::SendResult result;
  while (result.taken < batch.size()) {
    const auto rest = batch.subspan(result.taken);
    std::size_t length = 1;
    while (length < rest.size() && same_way(rest[length], rest[0])) ++length;
    const auto run = rest.first(length);

    transport::SendResult sent;
    bool by_wire = true;
    const Gid& destination = rest[0].envelope->destination;
    if (use_shared_memory_ && !destination.is_multicast() && routes.is_local(destination)) {
      const auto shared = exchange_.send(rest[0].slot, run, now);
      by_wire = shared.reach == transport::Reach::kForeign;
      sent = shared.sent;
      if (shared.reach == transport::Reach::kAbsent) {
        counters_.count(Drop::kPeerGone, length);
        sent = {.taken = length, .full = false};
      } else if (!by_wire) {
        counters_.add(Traffic::kSentShared, sent.taken);
      }
    }
    if (by_wire) sent = send_wire(run, routes, now);
    result.taken += sent.taken;
    if (sent.full || sent.taken < length) {
      result.full = true;
      break;
    }
  }
  return result;
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
