#include "transport/shm/exchange.h"

#include <array>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "host/packet_ring.h"
#include "transport/fd.h"
#include "transport/loopback/loopback.h"
#include "transport/shm/doorway.h"
#include "transport/shm/inbox.h"
#include "transport/shm/outbound.h"
#include "transport/shm/watch.h"
#include "transport/system_error.h"

namespace verbena::transport {

class Exchange::Impl {
 public:
  Impl(const ExchangeOptions& options, DropCounter& drops, std::unique_ptr<ForkSet> forks, Fd epoll, Fd doorbell)
      : options_(options),
        drops_(drops),
        forks_(std::move(forks)),
        epoll_(std::move(epoll)),
        doorbell_(std::move(doorbell)),
        doorway_(epoll_.get(), *forks_, drops),
        loopback_(options.ring_capacity, doorbell_.get(), options.stall_limit),
        inbox_(loopback_.memory(), drops),
        peers_(std::make_unique<std::array<Outbound, 256>>()) {}

  Result<Slot> claim(std::uint32_t offset) {
    auto slot = doorway_.claim(offset);
    if (!slot) return slot;
    owned_[slot->value()].store(true, std::memory_order_relaxed);
    if (slot_ == Slot{}) slot_ = *slot;
    return slot;
  }

  bool owns(Slot slot) const noexcept { return owned_[slot.value()].load(std::memory_order_relaxed); }
  OutboundContext context() noexcept { return {options_, drops_, *forks_, slot_, epoll_.get()}; }

  bool serve_some() noexcept;
  void adopt_news() noexcept;

  const ExchangeOptions options_;
  DropCounter& drops_;
  std::unique_ptr<ForkSet> forks_;
  Fd epoll_;
  Fd doorbell_;
  Slot slot_;
  std::array<std::atomic<bool>, 256> owned_{};
  Doorway doorway_;
  Loopback loopback_;
  // The receiving thread's.
  Inbox inbox_;
  std::vector<std::shared_ptr<Inbound>> news_;
  // Any thread's, each under its own lock.
  std::unique_ptr<std::array<Outbound, 256>> peers_;
};

// False when nothing was left to do.
bool Exchange::Impl::serve_some() noexcept {
  std::array<epoll_event, 32> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const auto tag = WatchTag::unpacked(events[static_cast<std::size_t>(i)].data.u64);
    switch (tag.kind) {
      case WatchKind::kListener:
        doorway_.on_listener(tag.id);
        break;
      case WatchKind::kConnection:
        doorway_.on_connection(tag.id);
        break;
      case WatchKind::kPeer:
        (*peers_)[tag.id & 0xff].on_end(context(), tag.id >> 8);
        break;
      case WatchKind::kDoorbell:
        break;  // to be awake is all it is for
    }
  }
  return count > 0;
}

void Exchange::Impl::adopt_news() noexcept {
  doorway_.take_news(news_);
  for (auto& inbound : news_) inbox_.add(std::move(inbound));
  news_.clear();
  inbox_.note_ends();
}

Result<std::unique_ptr<Exchange>> Exchange::open(const ExchangeOptions& options, DropCounter& drops) {
  if (!host::is_ring_capacity(options.ring_capacity)) {
    return failure(ErrorCode::kInvalidArgument, "A ring of " + std::to_string(options.ring_capacity) +
                                                    " bytes cannot be: it takes a power of two from 4096 to 16777216.");
  }
  auto forks = std::make_unique<ForkSet>();
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC), *forks);
  if (!epoll) return system_failure("Cannot make an epoll set");
  Fd doorbell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), *forks);
  if (!doorbell || !watch_doorbell(epoll.get(), doorbell.get(), {WatchKind::kDoorbell, 0})) {
    return system_failure("Cannot make a doorbell");
  }
  auto impl = std::make_unique<Impl>(options, drops, std::move(forks), std::move(epoll), std::move(doorbell));
  if (const auto slot = impl->claim(options.slot_offset); !slot) return tl::make_unexpected(slot.error());
  return std::unique_ptr<Exchange>(new Exchange(std::move(impl)));
}

Exchange::Exchange(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Exchange::~Exchange() = default;

Slot Exchange::slot() const noexcept {
  return impl_->slot_;
}

bool Exchange::owns(Slot slot) const noexcept {
  return impl_->owns(slot);
}

Result<Slot> Exchange::claim_another() {
  return impl_->claim(impl_->options_.slot_offset);
}

void Exchange::set_counter_page(int fd, std::size_t bytes) noexcept {
  impl_->doorway_.set_counter_page(fd, bytes);
}

int Exchange::fd() const noexcept {
  return impl_->epoll_.get();
}

void Exchange::serve() noexcept {
  constexpr int kRounds = 16;  // so that a stream of newcomers cannot keep the caller
  for (int round = 0; round < kRounds && impl_->serve_some();) ++round;
}

ExchangeResult Exchange::send(Slot slot, std::span<const Outgoing> batch, Instant now) noexcept {
  if (impl_->owns(slot)) return {.sent = impl_->loopback_.send(batch, now, impl_->drops_), .reach = Reach::kShared};
  if (slot == Slot{}) return {.sent = {}, .reach = Reach::kAbsent};
  return (*impl_->peers_)[slot.value()].send(impl_->context(), slot, batch, now);
}

Reach Exchange::reach(Slot slot, Instant now) noexcept {
  if (impl_->owns(slot)) return Reach::kShared;
  if (slot == Slot{}) return Reach::kAbsent;
  return (*impl_->peers_)[slot.value()].reach(impl_->context(), slot, now);
}

void Exchange::nudge(Slot slot) noexcept {
  if (!impl_->owns(slot)) (*impl_->peers_)[slot.value()].nudge();
}

std::size_t Exchange::receive(Receiver& receiver, std::size_t budget) noexcept {
  if (impl_->doorway_.has_news()) impl_->adopt_news();
  return impl_->inbox_.receive(receiver, budget);
}

bool Exchange::arm_doorbells() noexcept {
  return impl_->inbox_.arm() && !impl_->doorway_.has_news();
}

void Exchange::disarm_doorbells() noexcept {
  impl_->inbox_.disarm();
}

void Exchange::abandon() noexcept {
  impl_->forks_->close_all();
  // What is left refers to mappings that are not here, and may have been in the middle of a change.
  static_cast<void>(impl_.release());
}

}  // namespace verbena::transport
