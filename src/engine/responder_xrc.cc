// Requests of XRC: the shared receive queue that each names says whose memory it may touch, where its receives come
// from and where they complete (InfiniBand Architecture volume 1, annex A14).
//
// A number that names no queue of the XRC domain, and a message that goes on for another queue than it began for, are
// invalid requests.
#include "engine/responder.h"

namespace verbena::engine {

void Responder::execute_for(const wire::Packet& packet, const wire::OpcodeRow& row, Outcome& outcome) noexcept {
  const std::uint32_t number = packet.xrceth.srqn;
  XrcTarget target;
  bool found = xrc_->find(number, target);
  if (found && message_ != Message::kNone) found = number == shared_queue_ && target.identity == identity_;
  if (!found) return refuse(wire::NakCode::kInvalidRequest, packet, Drop::kUnknownSharedQueue, outcome);
  shared_queue_ = number;
  identity_ = target.identity;
  reach_ = target.reach;
  completions_ = target.completions;
  execute(packet, row, *target.receives, outcome);
}

// For an answer that leaves later than its request came: the queue may have gone.
bool Responder::reach_queue(std::uint32_t number) noexcept {
  XrcTarget target;
  if (!xrc_->find(number, target)) return false;
  reach_ = target.reach;
  return true;
}

// So that the receive that was taken can complete. False where its queue has gone, and the receive with it.
bool Responder::reach_taken() noexcept {
  XrcTarget target;
  if (!xrc_->find(shared_queue_, target) || target.identity != identity_) return false;
  completions_ = target.completions;
  return true;
}

}  // namespace verbena::engine
