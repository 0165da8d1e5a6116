#include "transport/shm/outbound.h"

#include <cerrno>
#include <mutex>
#include <string>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "transport/shm/slot_socket.h"
#include "transport/shm/watch.h"
#include "transport/system_error.h"

namespace verbena::transport {
namespace {

Reach refusal_of(const Error& error) noexcept {
  return error.code == ErrorCode::kNotFound ? Reach::kAbsent : Reach::kForeign;
}

// kPermission for another user's is no trouble; it is what the network is for.
bool is_worth_words(const Error& error) noexcept {
  return error.code != ErrorCode::kNotFound && error.code != ErrorCode::kPermission;
}

// Where this process may not write files of that size (ulimit -f), a smaller one.
Result<SharedMemory> make_ring_memory(std::size_t capacity) {
  constexpr std::size_t kSmallest = std::size_t{1} << 15;  // some datagrams of the largest size
  for (;; capacity /= 2) {
    auto memory = create_shared_memory("verbena-ring", host::ring_memory_bytes(capacity), OthersMay::kWrite);
    if (memory || memory.error().system_errno != EFBIG || capacity / 2 < kSmallest) return memory;
  }
}

}  // namespace

// The ring is complete before the hello leaves; it may be written as soon as this returns.
Result<std::unique_ptr<Outbound::Link>> Outbound::make_link(const OutboundContext& context, Slot slot) {
  auto socket = connect_to_slot(slot, context.forks);
  if (!socket) return tl::make_unexpected(socket.error());
  if (peer_user(socket->get()) != ::geteuid()) {
    return failure(ErrorCode::kPermission, "Slot " + std::to_string(slot.value()) + " belongs to another user.");
  }
  auto memory = make_ring_memory(context.options.ring_capacity);
  if (!memory) {
    Error error = memory.error();
    error.message +=
        " Nothing can be handed to the other processes of this address: what lands in the wrong one is lost.";
    return tl::make_unexpected(std::move(error));
  }
  host::format_ring(memory->mapping.bytes());
  Fd doorbell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), context.forks);
  if (!doorbell) return system_failure("Cannot make a doorbell");
  const host::Hello hello{.kind = host::HelloKind::kOpenRing,
                          .slot = context.own_slot,
                          .pid = static_cast<std::uint32_t>(::getpid()),
                          .memory_bytes = memory->mapping.bytes().size()};
  const int descriptors[] = {memory->fd.get(), doorbell.get()};
  if (!send_hello(socket->get(), hello, descriptors)) return system_failure("Cannot greet another process");
  const WatchTag tag{WatchKind::kPeer, (generation_ + 1) << 8 | slot.value()};
  if (!watch_socket(context.epoll, socket->get(), tag)) return system_failure("Cannot watch a connection");
  RingSender sender(memory->mapping.bytes(), doorbell.get(), context.options.stall_limit);
  return std::make_unique<Link>(Link{.generation = ++generation_,
                                     .socket = std::move(*socket),
                                     .doorbell = std::move(doorbell),
                                     .memory = std::move(memory->mapping),
                                     .sender = sender});
}

bool Outbound::connect(const OutboundContext& context, Slot slot, Instant now) noexcept {
  if (tried_ && now - tried_at_ < context.options.retry_interval) return false;
  tried_ = true;
  tried_at_ = now;
  auto link = make_link(context, slot);
  if (link) {
    link_ = std::move(*link);
    return true;
  }
  refusal_ = refusal_of(link.error());
  if (!explained_ && is_worth_words(link.error())) {
    explained_ = true;
    context.drops.explain(link.error().message);
  }
  return false;
}

void Outbound::unlink(const OutboundContext& context) noexcept {
  if (const auto lost = link_->sender.count_unread(); lost != 0) context.drops.count(Drop::kPeerGone, lost);
  unwatch(context.epoll, link_->socket.get());
  link_.reset();
  refusal_ = Reach::kAbsent;
}

ExchangeResult Outbound::send(const OutboundContext& context, Slot slot, std::span<const Outgoing> batch,
                              Instant now) noexcept {
  const std::lock_guard lock(lock_);
  if (!link_ && !connect(context, slot, now)) return {.sent = {}, .reach = refusal_};
  const auto outcome = link_->sender.send(batch, now, context.drops);
  if (outcome.broken) unlink(context);
  return {.sent = outcome.sent, .reach = Reach::kShared};
}

Reach Outbound::reach(const OutboundContext& context, Slot slot, Instant now) noexcept {
  const std::lock_guard lock(lock_);
  return link_ || connect(context, slot, now) ? Reach::kShared : refusal_;
}

void Outbound::nudge() noexcept {
  if (!lock_.try_lock()) return;
  const std::lock_guard guard(lock_, std::adopt_lock);
  if (link_ != nullptr) link_->sender.nudge();
}

void Outbound::on_end(const OutboundContext& context, std::uint64_t generation) noexcept {
  const std::lock_guard lock(lock_);
  if (link_ && link_->generation == generation) unlink(context);
}

}  // namespace verbena::transport
