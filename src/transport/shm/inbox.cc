#include "transport/shm/inbox.h"

#include <utility>

namespace verbena::transport {

Inbox::Inbox(std::span<std::byte> loopback, DropCounter& drops) : drops_(drops) {
  lanes_.push_back({host::RingConsumer(loopback), nullptr});
}

void Inbox::add(std::shared_ptr<Inbound> inbound) {
  const auto memory = inbound->memory();
  lanes_.push_back({host::RingConsumer(memory), std::move(inbound)});
}

std::size_t Inbox::receive(Receiver& receiver, std::size_t budget) noexcept {
  std::size_t count = 0;
  const std::size_t lanes = lanes_.size();
  for (std::size_t i = 0, at = first_; i < lanes && count < budget; ++i) {
    const std::size_t here = lanes_[at].ring.looks_empty() ? 0 : drain(lanes_[at], receiver, budget - count);
    if (++at == lanes) at = 0;
    if (here != 0) first_ = at;
    count += here;
  }
  if (has_ends_) let_go_of_the_gone();
  return count;
}

std::size_t Inbox::drain(Lane& lane, Receiver& receiver, std::size_t budget) noexcept {
  if (lane.broken) return 0;
  std::size_t count = 0;
  host::RingRecord record;
  while (count < budget) {
    const auto pop = lane.ring.pop(record);
    if (pop == host::Pop::kBroken) on_broken(lane);
    if (pop != host::Pop::kRecord) break;
    const Incoming datagram{.envelope = *record.envelope, .bytes = record.bytes, .has_icrc = record.has_icrc};
    if (receiver.on_datagram(datagram) == Receipt::kLater) {
      lane.ring.put_back();
      break;
    }
    ++count;
  }
  lane.ring.release();
  return count;
}

void Inbox::on_broken(Lane& lane) noexcept {
  lane.broken = true;
  if (lane.inbound) lane.inbound->hang_up();
  has_ends_ = true;
  drops_.count(Drop::kRingBroken);
  if (!explained_)
    drops_.explain("Another process of this user wrote into its ring what cannot be; the ring is closed.");
  explained_ = true;
}

void Inbox::let_go_of_the_gone() noexcept {
  has_ends_ = false;
  std::erase_if(lanes_, [this](Lane& lane) {
    if (lane.broken) return true;
    if (!lane.inbound || !lane.inbound->has_ended()) return false;
    const bool drained = lane.ring.looks_empty();
    if (!drained) has_ends_ = true;
    return drained;
  });
  if (first_ >= lanes_.size()) first_ = 0;
}

bool Inbox::arm() noexcept {
  bool idle = true;
  for (auto& lane : lanes_) idle = lane.ring.arm() && idle;
  return idle;
}

void Inbox::disarm() noexcept {
  for (auto& lane : lanes_) lane.ring.disarm();
}

}  // namespace verbena::transport
