#include "verbena/ah_sender.h"

#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "ah/core.h"

namespace verbena {

AhSender::AhSender(std::shared_ptr<ah::Core> core, std::shared_ptr<ah::SendQueue> queue) noexcept
    : core_(std::move(core)), queue_(std::move(queue)), work_(queue_) {}

AhSender& AhSender::operator=(AhSender&& other) noexcept {
  if (this != &other) {
    if (work_) core_->drop_sender(work_);
    core_ = std::move(other.core_);
    queue_ = std::move(other.queue_);
    work_ = std::move(other.work_);
  }
  return *this;
}

AhSender::~AhSender() {
  if (work_) core_->drop_sender(work_);
}

ibv_ah* AhSender::next(const Destination& destination) noexcept {
  if (!queue_) [[unlikely]]
    return nullptr;
  return queue_->next(ah::key_of(destination, queue_->port));
}

ibv_ah* AhSender::next(const AhHandle& handle) noexcept {
  if (!queue_ || handle.core_ != core_) [[unlikely]]
    return nullptr;  // either is empty, or they are of different directories
  return queue_->next(*handle.binding_);
}

ibv_ah* AhSender::next_reply(const ibv_wc& completion, std::span<const std::byte, 40> grh) noexcept {
  if (!queue_) [[unlikely]]
    return nullptr;
  const std::optional<ah::DestinationKey> reply = queue_->inside([&]() -> std::optional<ah::DestinationKey> {
    const std::vector<GidEntry>* own = core_->own();
    if (own == nullptr) return std::nullopt;
    const Result<Destination> to = core_->reply_from(completion, grh, *own);
    return to ? std::optional(ah::key_of(*to, queue_->port)) : std::nullopt;
  });
  return reply ? queue_->next(*reply) : nullptr;
}

std::uint64_t AhSender::position() const noexcept {
  return work_ ? work_->position.load(std::memory_order_relaxed) : 0;
}

std::uint64_t AhSender::outstanding() const noexcept {
  return work_ ? work_->outstanding() : 0;
}

void AhSender::retract(std::uint64_t count) noexcept {
  if (work_) work_->retract(count);
}

void AhSender::completed(std::uint64_t count) noexcept {
  if (work_) work_->complete_through(work_->completed.load(std::memory_order_relaxed) + count);
}

void AhSender::completed_through(std::uint64_t position) noexcept {
  if (work_) work_->complete_through(position);
}

void AhSender::drained() noexcept {
  if (work_) work_->complete_through(work_->position.load(std::memory_order_relaxed));
}

AhSenderRest AhSender::close(Deadline deadline, const std::function<void()>& poll) {
  constexpr auto kStep = std::chrono::microseconds(100);
  queue_.reset();
  if (!work_) return {};
  for (bool first = true; work_->outstanding() != 0; first = false) {
    if (!first && deadline.passed()) break;
    if (poll) {
      poll();
    } else if (!deadline.passed()) {
      std::this_thread::sleep_for(kStep);
    }
  }
  if (work_->outstanding() == 0) core_->retire_sender(work_);
  return core_->rest_of(*work_);
}

}  // namespace verbena
