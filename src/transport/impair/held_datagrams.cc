#include "transport/impair/held_datagrams.h"

#include <algorithm>

namespace verbena::transport {

HeldDatagram::HeldDatagram(const Outgoing& datagram)
    : envelope_(*datagram.envelope),
      network_header_(datagram.network_header.begin(), datagram.network_header.end()),
      slot_(datagram.slot),
      has_icrc_(datagram.has_icrc) {
  bytes_.reserve(datagram.size);
  for (const auto part : datagram.parts) bytes_.insert(bytes_.end(), part.begin(), part.end());
}

Outgoing HeldDatagram::outgoing() noexcept {
  part_ = bytes_;
  return {.envelope = &envelope_,
          .parts = {&part_, 1},
          .size = static_cast<std::uint32_t>(bytes_.size()),
          .slot = slot_,
          .has_icrc = has_icrc_,
          .network_header = network_header_};
}

// IPv4 has the ECN bits in its second byte, which the checksum covers; IPv6 has them in the upper half of its second.
void HeldDatagram::mark() noexcept {
  constexpr std::uint8_t kExperienced = 0x3;
  constexpr std::size_t kChecksum = 10;
  const std::uint8_t before = envelope_.traffic_class;
  envelope_.traffic_class |= kExperienced;
  if (network_header_.size() <= kChecksum + 1) return;
  if (std::to_integer<unsigned>(network_header_[0]) >> 4 == 6) {
    network_header_[1] |= std::byte{kExperienced << 4};
    return;
  }
  network_header_[1] |= std::byte{kExperienced};
  // The complement of a sum in which one summand grew (RFC 1624).
  std::uint32_t sum = std::to_integer<std::uint32_t>(network_header_[kChecksum]) << 8 |
                      std::to_integer<std::uint32_t>(network_header_[kChecksum + 1]);
  sum = (~sum & 0xffff) + envelope_.traffic_class - before;
  sum = ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
  network_header_[kChecksum] = static_cast<std::byte>(sum >> 8);
  network_header_[kChecksum + 1] = static_cast<std::byte>(sum & 0xff);
}

bool HeldDatagrams::hold(HeldDatagram datagram, Instant due, std::uint64_t overtaken_at) {
  if (entries_.size() >= limit_) return false;
  const auto [entry, added] = entries_.emplace(std::pair(due, order_++), Entry{std::move(datagram), overtaken_at});
  if (overtaken_at != kNeverOvertaken) by_overtakers_.emplace(overtaken_at, entry);
  return added;
}

HeldDatagram* HeldDatagrams::find_due(Instant now, std::uint64_t sent) noexcept {
  if (!by_overtakers_.empty() && by_overtakers_.begin()->first <= sent) {
    due_ = by_overtakers_.begin()->second;
    return &due_->second.datagram;
  }
  if (entries_.empty() || entries_.begin()->first.first > now) return nullptr;
  due_ = entries_.begin();
  return &due_->second.datagram;
}

void HeldDatagrams::pop_due() noexcept {
  const auto [first, last] = by_overtakers_.equal_range(due_->second.overtaken_at);
  const auto found = std::find_if(first, last, [this](const auto& one) { return one.second == due_; });
  if (found != last) by_overtakers_.erase(found);
  entries_.erase(due_);
}

void HeldDatagrams::put_off_due(Instant until) {
  auto datagram = std::move(due_->second.datagram);
  pop_due();
  hold(std::move(datagram), until);
}

std::optional<Instant> HeldDatagrams::next_due() const noexcept {
  if (entries_.empty()) return std::nullopt;
  return entries_.begin()->first.first;
}

}  // namespace verbena::transport
