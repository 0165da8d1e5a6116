#include "verbena/ah_handle.h"

#include <utility>

#include "ah/core.h"

namespace verbena {

AhHandle::AhHandle(std::shared_ptr<ah::Core> core, ah::Binding* binding, ah::Holding* holding) noexcept
    : core_(std::move(core)), binding_(binding), holding_(holding) {}

AhHandle::AhHandle(const AhHandle& other) : core_(other.core_), binding_(other.binding_), holding_(other.holding_) {
  if (binding_ == nullptr) return;
  binding_->handles.fetch_add(1, std::memory_order_relaxed);
  holding_->count.fetch_add(1, std::memory_order_relaxed);
}

AhHandle::AhHandle(AhHandle&& other) noexcept
    : core_(std::move(other.core_)),
      binding_(std::exchange(other.binding_, nullptr)),
      holding_(std::exchange(other.holding_, nullptr)) {}

AhHandle& AhHandle::operator=(AhHandle other) noexcept {
  std::swap(core_, other.core_);
  std::swap(binding_, other.binding_);
  std::swap(holding_, other.holding_);
  return *this;
}

// The record first: it may go when nobody holds the binding. Release: partner of the acquire loads in Core::is_unheld
// and in holding.cc.
AhHandle::~AhHandle() {
  if (binding_ == nullptr) return;
  holding_->count.fetch_sub(1, std::memory_order_release);
  binding_->handles.fetch_sub(1, std::memory_order_release);
}

Destination AhHandle::destination() const noexcept {
  return ah::destination_of(binding_->key);
}

Result<AhLease> AhHandle::lease(CallSite place) const {
  if (binding_ == nullptr) return failure(ErrorCode::kInvalidArgument, "the handle is empty");
  return core_->lease(*binding_, place);
}

AhLease::AhLease(std::shared_ptr<ah::Core> core, ah::Entry* entry, ah::Holding* holding) noexcept
    : core_(std::move(core)), entry_(entry), holding_(holding) {}

AhLease::AhLease(AhLease&& other) noexcept
    : core_(std::move(other.core_)),
      entry_(std::exchange(other.entry_, nullptr)),
      holding_(std::exchange(other.holding_, nullptr)) {}

AhLease& AhLease::operator=(AhLease&& other) noexcept {
  AhLease taken(std::move(other));
  std::swap(core_, taken.core_);
  std::swap(entry_, taken.entry_);
  std::swap(holding_, taken.holding_);
  return *this;
}

// As for a handle. Release: partner of the acquire load in Core::sweep.
AhLease::~AhLease() {
  if (entry_ == nullptr) return;
  holding_->count.fetch_sub(1, std::memory_order_release);
  entry_->leases.fetch_sub(1, std::memory_order_release);
}

ibv_ah* AhLease::get() const noexcept {
  return entry_ != nullptr ? entry_->address : nullptr;
}

bool AhLease::superseded() const noexcept {
  return entry_ != nullptr && core_->is_superseded(*entry_);
}

AhTicket::AhTicket(std::shared_ptr<ah::Core> core, std::shared_ptr<ah::Attempt> attempt, CallSite place)
    : core_(std::move(core)), attempt_(std::move(attempt)), place_(place) {}

// By swap: the old core goes after the old attempt, which pins a binding of it.
AhTicket& AhTicket::operator=(AhTicket other) noexcept {
  std::swap(core_, other.core_);
  std::swap(attempt_, other.attempt_);
  std::swap(place_, other.place_);
  return *this;
}

bool AhTicket::ready() const {
  return attempt_ && attempt_->done();
}

Result<AhHandle> AhTicket::wait(Deadline deadline) const {
  if (!attempt_) return failure(ErrorCode::kInvalidArgument, "the ticket is empty");
  return core_->settle(*attempt_, deadline, place_);
}

Status AhTicket::on_ready(std::function<void(Result<AhHandle>)> callback) const {
  if (!attempt_) return failure(ErrorCode::kInvalidArgument, "the ticket is empty");
  if (!callback) return failure(ErrorCode::kInvalidArgument, "the callback is empty");
  return core_->on_ready(attempt_, place_, std::move(callback));
}

}  // namespace verbena
