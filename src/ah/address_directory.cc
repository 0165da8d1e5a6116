#include "verbena/address_directory.h"

#include <utility>

#include "ah/core.h"
#include "verbena/ah_handle.h"
#include "verbena/ah_sender.h"

namespace verbena {

namespace {

tl::unexpected<Error> is_empty() {
  return failure(ErrorCode::kInvalidArgument, "the directory is empty: moved from, or not made by create()");
}

}  // namespace

Result<AhDirectory> AhDirectory::create(const ProtectionDomain& domain, std::uint8_t port, AhDirectoryOptions options) {
  Result<std::shared_ptr<ah::Core>> core = ah::Core::create(domain.get(), domain.keeper(), port, std::move(options));
  if (!core) return tl::make_unexpected(core.error());
  return AhDirectory(std::move(*core));
}

Result<AhDirectory> AhDirectory::create(ibv_pd* domain, std::uint8_t port, AhDirectoryOptions options) {
  Result<std::shared_ptr<ah::Core>> core = ah::Core::create(domain, nullptr, port, std::move(options));
  if (!core) return tl::make_unexpected(core.error());
  return AhDirectory(std::move(*core));
}

AhDirectory& AhDirectory::operator=(AhDirectory&& other) noexcept {
  if (this != &other) {
    if (core_) core_->shut_down();
    core_ = std::move(other.core_);
  }
  return *this;
}

AhDirectory::~AhDirectory() {
  if (core_) core_->shut_down();
}

Result<AhHandle> AhDirectory::acquire(const Destination& destination, Deadline deadline, CallSite place) {
  if (!core_) return is_empty();
  return core_->acquire(destination, deadline, place);
}

AhTicket AhDirectory::acquire_async(const Destination& destination, CallSite place) {
  if (!core_) return {};
  return core_->acquire_async(destination, place);
}

std::size_t AhDirectory::prewarm(std::span<const Destination> destinations) {
  if (!core_) return 0;
  return core_->prewarm(destinations);
}

AhHandle AhDirectory::find(const Destination& destination, CallSite place) {
  if (!core_) return {};
  return core_->find(destination, place);
}

Result<AhSender> AhDirectory::make_sender(CallSite place) {
  if (!core_) return is_empty();
  return core_->make_sender(place);
}

Result<Destination> AhDirectory::reply_to(const ibv_wc& completion, std::span<const std::byte, 40> grh) const {
  if (!core_) return is_empty();
  return core_->reply_to(completion, grh);
}

Destination AhDirectory::paced(Destination destination, PortSpeed far) const {
  if (core_ && destination.static_rate == IBV_RATE_MAX) {
    destination.static_rate = static_cast<std::uint8_t>(rate_for_path(core_->port_speed(), far));
  }
  return destination;
}

Result<EffectiveAddress> AhDirectory::effective(const AhHandle& handle) const {
  if (handle.empty() || handle.core_ != core_) {
    return failure(ErrorCode::kInvalidArgument, "the handle is empty, or of another directory");
  }
  Result<EffectiveAddress> effective = core_->effective(*handle.binding_);
  if (effective) {
    core_->add_untold_changes(*effective);
    effective->rate = advise_rate(static_cast<ibv_rate>(effective->attributes.static_rate), core_->port_speed());
  }
  return effective;
}

AhStats AhDirectory::stats() const {
  if (!core_) return {};
  return core_->stats();
}

std::vector<AhRow> AhDirectory::rows() const {
  if (!core_) return {};
  return core_->rows();
}

std::vector<AhHolding> AhDirectory::leaks(std::chrono::nanoseconds held_longer_than) const {
  if (!core_) return {};
  return core_->leaks(held_longer_than);
}

const std::string& AhDirectory::name() const {
  static const std::string none;
  return core_ ? core_->name() : none;
}

std::uint8_t AhDirectory::port() const {
  if (!core_) return 0;
  return core_->facts().port;
}

void AhDirectory::on_async_event(const ibv_async_event& event) {
  if (core_) core_->on_async_event(event);
}

void AhDirectory::on_network_change(const NetworkChange& change) {
  if (core_) core_->on_network_change(change);
}

Result<AhDirectory::Subscription> AhDirectory::subscribe(AhSubscriber subscriber) {
  if (!core_) return is_empty();
  return core_->subscribe(std::move(subscriber));
}

void AhDirectory::unsubscribe(Subscription subscription) {
  if (core_) core_->unsubscribe(subscription);
}

AhLeftover AhDirectory::close(Deadline deadline) {
  if (!core_) return {};
  return core_->close(deadline);
}

}  // namespace verbena
