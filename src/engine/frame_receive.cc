// How a raw packet queue pair receives: a frame fills the oldest receive from its first byte, without a GRH in front.
// One that does not fit ends the queue pair, as on hardware.
#include "engine/queue_pair.h"
#include "engine/sge_range.h"

namespace verbena::engine {

Drop QueuePair::on_frame(std::span<const std::byte> frame) noexcept {
  if (!receives(state())) return Drop::kBadQpState;
  if (has_shared_receives()) {
    TakenReceive taken;
    if (shared_receives_->take(0, taken) != Take::kTaken) return Drop::kNoReceiveRequest;
    return deliver_frame(frame, {taken.wr_id, taken.list()});
  }
  if (receive_queue_.empty()) return Drop::kNoReceiveRequest;
  const ReceiveRequest request = receive_queue_.front();
  receive_queue_.pop();  // the slot stays as it is until the next post
  return deliver_frame(frame, request);
}

Drop QueuePair::deliver_frame(std::span<const std::byte> frame, const ReceiveRequest& request) noexcept {
  if (request.length() < frame.size()) {
    state_.store(QpState::kError, std::memory_order_relaxed);
    complete_receive(request.wr_id, WcStatus::kLocalLengthError, MemoryFault::kNone);
    settle_receive();
    return Drop::kFrameTooLong;
  }
  MemoryPieces target;
  const MemoryFault fault = resolve_range(*memory_, *domain_, request.sges, 0, frame.size(), kLocalWrite, target);
  if (fault != MemoryFault::kNone) return fail_receive(request.wr_id, fault);
  store(frame, target);

  Completion completion;
  completion.wr_id = request.wr_id;
  completion.opcode = WcOpcode::kReceive;
  completion.byte_length = static_cast<std::uint32_t>(frame.size());
  completion.qp_number = qpn_.value();
  return receive_completions_->push(completion, receive_place()) ? Drop::kNone : Drop::kCqOverrun;
}

}  // namespace verbena::engine
