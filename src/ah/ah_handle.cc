#include "verbena/ah_handle.h"

#include <utility>

#include "ah/core.h"

namespace verbena {

AhHandle::AhHandle(std::shared_ptr<ah::Core> core, ah::Binding* binding) noexcept
    : core_(std::move(core)), binding_(binding) {}

AhHandle::AhHandle(const AhHandle& other) : core_(other.core_), binding_(other.binding_) {
  if (binding_ != nullptr) binding_->handles.fetch_add(1, std::memory_order_relaxed);
}

AhHandle::AhHandle(AhHandle&& other) noexcept
    : core_(std::move(other.core_)), binding_(std::exchange(other.binding_, nullptr)) {}

AhHandle& AhHandle::operator=(AhHandle other) noexcept {
  std::swap(core_, other.core_);
  std::swap(binding_, other.binding_);
  return *this;
}

// Release: partner of the acquire load in Core::is_unheld.
AhHandle::~AhHandle() {
  if (binding_ != nullptr) binding_->handles.fetch_sub(1, std::memory_order_release);
}

Destination AhHandle::destination() const noexcept {
  return ah::destination_of(binding_->key);
}

Result<AhLease> AhHandle::lease() const {
  if (binding_ == nullptr) return failure(ErrorCode::kInvalidArgument, "the handle is empty");
  return core_->lease(*binding_);
}

AhLease::AhLease(std::shared_ptr<ah::Core> core, ah::Entry* entry) noexcept : core_(std::move(core)), entry_(entry) {}

AhLease::AhLease(AhLease&& other) noexcept
    : core_(std::move(other.core_)), entry_(std::exchange(other.entry_, nullptr)) {}

AhLease& AhLease::operator=(AhLease&& other) noexcept {
  AhLease taken(std::move(other));
  std::swap(core_, taken.core_);
  std::swap(entry_, taken.entry_);
  return *this;
}

// Release: partner of the acquire load in Core::sweep.
AhLease::~AhLease() {
  if (entry_ != nullptr) entry_->leases.fetch_sub(1, std::memory_order_release);
}

ibv_ah* AhLease::get() const noexcept {
  return entry_ != nullptr ? entry_->address : nullptr;
}

bool AhLease::superseded() const noexcept {
  return entry_ != nullptr && core_->is_superseded(*entry_);
}

AhTicket::AhTicket(std::shared_ptr<ah::Core> core, std::shared_ptr<ah::Attempt> attempt)
    : core_(std::move(core)), attempt_(std::move(attempt)) {}

// By swap: the old core goes after the old attempt, which pins a binding of it.
AhTicket& AhTicket::operator=(AhTicket other) noexcept {
  std::swap(core_, other.core_);
  std::swap(attempt_, other.attempt_);
  return *this;
}

bool AhTicket::ready() const {
  return attempt_ && attempt_->done();
}

Result<AhHandle> AhTicket::wait(Deadline deadline) const {
  if (!attempt_) return failure(ErrorCode::kInvalidArgument, "the ticket is empty");
  return core_->settle(*attempt_, deadline);
}

Status AhTicket::on_ready(std::function<void(Result<AhHandle>)> callback) const {
  if (!attempt_) return failure(ErrorCode::kInvalidArgument, "the ticket is empty");
  if (!callback) return failure(ErrorCode::kInvalidArgument, "the callback is empty");
  return core_->on_ready(attempt_, std::move(callback));
}

}  // namespace verbena
