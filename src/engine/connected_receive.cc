// How a connected queue pair receives: through its responder, whose outcome becomes completions, events and states
// here.
#include <utility>

#include "engine/queue_pair.h"
#include "wire/credit.h"

namespace verbena::engine {
namespace {

// The queue pair's own receives, as a responder takes them. The slot stays as it is until the next post.
class OwnReceives final : public ReceiveSource {
 public:
  explicit OwnReceives(ReceiveQueue& queue) noexcept : queue_(queue) {}
  Take take(std::uint64_t /*length*/, TakenReceive& taken) noexcept override {
    if (queue_.empty()) return Take::kEmpty;
    taken.copy(queue_.front());
    queue_.pop();
    return Take::kTaken;
  }

 private:
  ReceiveQueue& queue_;
};

}  // namespace

// How many receives the other end may count on. Those of a shared queue are nobody's until they are taken.
std::uint8_t QueuePair::credits() const noexcept {
  return has_shared_receives() ? wire::kNoCreditLimit : wire::credit_code(receive_queue_.size());
}

bool QueuePair::poll_answer(Instant now, Transmit& packet) noexcept {
  if (responder_ == nullptr || !responder_->poll_transmit(now, credits(), packet)) return false;
  if (responder_->take_refusal() && state() != QpState::kError) [[unlikely]] {
    state_.store(QpState::kError, std::memory_order_relaxed);
    raise(QpEvent::kAccessError);
    settle_receive();
  }
  return true;
}

void QueuePair::rewind_responses() noexcept {
  notification_.rewind();
  if (responder_ != nullptr) responder_->rewind_transmit();
}

std::optional<Instant> QueuePair::next_response() const noexcept {
  if (responder_ == nullptr || notification_.is_due()) return std::nullopt;
  return responder_->next_departure();
}

// Of XRC, that of the shared receive queue.
CompletionSink& QueuePair::receive_sink() const noexcept {
  return type_ == QpType::kXrcReceive ? responder_->xrc_completions() : *receive_completions_;
}

// A packet whose turn it was, and those that had come before it and waited for it.
Drop QueuePair::receive_request(const wire::Packet& packet) noexcept {
  Drop drop = carry_out(packet);
  while (responder_->has_early() && state() != QpState::kError) [[unlikely]] {
      const auto early = responder_->take_early();
      if (early == nullptr) break;
      const Drop of_early = carry_out(early->packet);  // nobody else tells of it
      if (drop == Drop::kNone) drop = of_early;
    }
  return drop;
}

Drop QueuePair::carry_out(const wire::Packet& packet) noexcept {
  if (state() == QpState::kReadyToReceive && !std::exchange(established_, true)) {
    raise(QpEvent::kCommunicationEstablished);
  }
  OwnReceives own(receive_queue_);
  Responder::Outcome outcome;
  responder_->on_request(packet, shared_receives_ != nullptr ? *shared_receives_ : static_cast<ReceiveSource&>(own),
                         outcome);
  if (outcome.completes && !receive_sink().push(outcome.completion, receive_place())) {
    outcome.drop = Drop::kCqOverrun;
    if (type_ == QpType::kXrcReceive) {  // not one of those that the completion queue knows
      outcome.fatal = true;
      raise(QpEvent::kFatal);
    }
  }
  if (outcome.fatal) {
    state_.store(QpState::kError, std::memory_order_relaxed);
    if (outcome.tells) raise(outcome.access ? QpEvent::kAccessError : QpEvent::kRequestError);
    settle_receive();
  }
  return outcome.drop;
}

}  // namespace verbena::engine
