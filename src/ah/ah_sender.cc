#include "verbena/ah_sender.h"

#include <utility>

#include "ah/core.h"

namespace verbena {

AhSender::AhSender(std::shared_ptr<ah::Core> core, std::shared_ptr<ah::SendQueue> queue) noexcept
    : core_(std::move(core)), queue_(std::move(queue)) {}

AhSender& AhSender::operator=(AhSender&& other) noexcept {
  if (this != &other) {
    if (queue_) core_->retire_sender(queue_);
    core_ = std::move(other.core_);
    queue_ = std::move(other.queue_);
  }
  return *this;
}

AhSender::~AhSender() {
  if (queue_) core_->retire_sender(queue_);
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
  if (!queue_->own || queue_->own_as_of != core_->own_generation()) [[unlikely]]
    core_->refresh_own(*queue_);
  if (!queue_->own) return nullptr;
  const Result<Destination> reply = core_->reply_from(completion, grh, *queue_->own);
  return reply ? queue_->next(ah::key_of(*reply, queue_->port)) : nullptr;
}

std::uint64_t AhSender::position() const noexcept {
  return queue_ ? queue_->position.load(std::memory_order_relaxed) : 0;
}

std::uint64_t AhSender::outstanding() const noexcept {
  return queue_ ? queue_->outstanding() : 0;
}

void AhSender::retract(std::uint64_t count) noexcept {
  if (queue_) queue_->retract(count);
}

void AhSender::completed(std::uint64_t count) noexcept {
  if (queue_) queue_->complete_through(queue_->completed.load(std::memory_order_relaxed) + count);
}

void AhSender::completed_through(std::uint64_t position) noexcept {
  if (queue_) queue_->complete_through(position);
}

void AhSender::drained() noexcept {
  if (queue_) queue_->complete_through(queue_->position.load(std::memory_order_relaxed));
}

}  // namespace verbena
