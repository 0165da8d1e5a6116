#include "verbena/address_directory.h"

#include <array>
#include <utility>

#include "ah/core.h"
#include "verbena/ah_handle.h"
#include "verbena/ah_sender.h"

namespace verbena {

const char* to_string(AhState state) noexcept {
  switch (state) {
    case AhState::kPending:
      return "pending";
    case AhState::kReady:
      return "ready";
    case AhState::kRefreshing:
      return "refreshing";
    case AhState::kFailed:
      return "failed";
    case AhState::kRetired:
      return "retired";
  }
  return "unknown";
}

std::span<const AhStatRow> ah_stat_rows() noexcept {
  static constexpr std::array kRows{
      AhStatRow{"live", "handles", "Address handles on the device, retired ones included.", &AhStats::live},
      AhStatRow{"ready", "destinations", "Destinations that a look-up finds.", &AhStats::ready},
      AhStatRow{"pending", "destinations", "Being resolved or created, or queued for it.", &AhStats::pending},
      AhStatRow{"negative", "destinations", "Remembered as failed.", &AhStats::negative},
      AhStatRow{"retired", "handles", "Replaced or reclaimed, waiting for work in flight or a lease.",
                &AhStats::retired},
      AhStatRow{"in_flight", "sends", "Sends that took an address and have not completed.", &AhStats::in_flight},
      AhStatRow{"handles", "handles", "Counted handles that the application holds.", &AhStats::handles},
      AhStatRow{"leases", "leases", "Leases that the application holds.", &AhStats::leases},
      AhStatRow{"hits", "events", "Addresses taken by senders, and acquisitions answered at once.", &AhStats::hits},
      AhStatRow{"misses", "events", "Look-ups that found nothing ready, and acquisitions that waited.",
                &AhStats::misses},
      AhStatRow{"negative_hits", "events", "Answered from the memory of a failure.", &AhStats::negative_hits},
      AhStatRow{"created", "events", "Address handles created.", &AhStats::created},
      AhStatRow{"failed", "events", "Attempts that ended in an error.", &AhStats::failed},
      AhStatRow{"destroyed", "events", "Address handles destroyed.", &AhStats::destroyed},
      AhStatRow{"replaced", "events", "Address handles swapped for a newer one.", &AhStats::replaced},
      AhStatRow{"stale", "events", "Address handles found invalid by an event.", &AhStats::stale},
      AhStatRow{"reclaimed_idle", "events", "Given back because unused for long.", &AhStats::reclaimed_idle},
      AhStatRow{"reclaimed_pressure", "events", "Given back to make room for others.", &AhStats::reclaimed_pressure},
      AhStatRow{"refused", "events", "Answers that a limit was reached.", &AhStats::refused},
      AhStatRow{"misused", "events", "Completions reported that no send accounts for.", &AhStats::misused},
  };
  return kRows;
}

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

Result<AhHandle> AhDirectory::acquire(const Destination& destination, Deadline deadline) {
  return core_->acquire(destination, deadline);
}

AhTicket AhDirectory::acquire_async(const Destination& destination) {
  return core_->acquire_async(destination);
}

std::size_t AhDirectory::prewarm(std::span<const Destination> destinations) {
  return core_->prewarm(destinations);
}

AhHandle AhDirectory::find(const Destination& destination) {
  return core_->find(destination);
}

Result<AhSender> AhDirectory::make_sender() {
  return core_->make_sender();
}

Result<Destination> AhDirectory::reply_to(const ibv_wc& completion, std::span<const std::byte, 40> grh) const {
  return core_->reply_to(completion, grh);
}

Result<EffectiveAddress> AhDirectory::effective(const AhHandle& handle) const {
  if (handle.empty() || handle.core_ != core_) {
    return failure(ErrorCode::kInvalidArgument, "the handle is empty, or of another directory");
  }
  return core_->effective(*handle.binding_);
}

AhStats AhDirectory::stats() const {
  return core_->stats();
}

std::vector<AhRow> AhDirectory::rows() const {
  return core_->rows();
}

const std::string& AhDirectory::name() const {
  return core_->name();
}

std::uint8_t AhDirectory::port() const {
  return core_->facts().port;
}

void AhDirectory::on_async_event(const ibv_async_event& event) {
  core_->on_async_event(event);
}

void AhDirectory::on_network_change(const NetworkChange& change) {
  core_->on_network_change(change);
}

AhLeftover AhDirectory::close(Deadline deadline) {
  return core_->close(deadline);
}

}  // namespace verbena
