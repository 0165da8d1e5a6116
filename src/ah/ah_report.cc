// The words and the rows of what a directory reports.
#include "verbena/ah_report.h"

#include <array>

#include "verbena/ah_event.h"

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

const char* to_string(AhCause cause) noexcept {
  switch (cause) {
    case AhCause::kNone:
      return "none";
    case AhCause::kGid:
      return "gid";
    case AhCause::kLid:
      return "lid";
    case AhCause::kPort:
      return "port";
    case AhCause::kPkey:
      return "pkey";
    case AhCause::kSubnetManager:
      return "subnet_manager";
    case AhCause::kReregister:
      return "reregister";
    case AhCause::kDevice:
      return "device";
    case AhCause::kNeighbour:
      return "neighbour";
    case AhCause::kAddress:
      return "address";
    case AhCause::kRoute:
      return "route";
    case AhCause::kLink:
      return "link";
    case AhCause::kNoticesLost:
      return "notices_lost";
    case AhCause::kAge:
      return "age";
    case AhCause::kIdle:
      return "idle";
    case AhCause::kPressure:
      return "pressure";
    case AhCause::kShare:
      return "share";
  }
  return "unknown";
}

const char* to_string(AhEvent::Kind kind) noexcept {
  switch (kind) {
    case AhEvent::Kind::kReady:
      return "ready";
    case AhEvent::Kind::kStale:
      return "stale";
    case AhEvent::Kind::kReplaced:
      return "replaced";
    case AhEvent::Kind::kFailed:
      return "failed";
    case AhEvent::Kind::kGone:
      return "gone";
    case AhEvent::Kind::kRecovered:
      return "recovered";
    case AhEvent::Kind::kEvicted:
      return "evicted";
    case AhEvent::Kind::kDropped:
      return "dropped";
  }
  return "unknown";
}

std::span<const AhStatRow> ah_stat_rows() noexcept {
  static constexpr std::array kRows{
      AhStatRow{"live", "handles", "Address handles on the device, retired ones included.", &AhStats::live},
      AhStatRow{"ready", "destinations", "Destinations that a look-up finds.", &AhStats::ready},
      AhStatRow{"pending", "destinations", "Not ready: being resolved or created, or queued for it.",
                &AhStats::pending},
      AhStatRow{"refreshing", "destinations", "Ready, and looked at again or made anew, or queued for it.",
                &AhStats::refreshing},
      AhStatRow{"negative", "destinations", "Remembered as failed.", &AhStats::negative},
      AhStatRow{"retired", "handles", "Replaced or reclaimed, waiting for work in flight or a lease.",
                &AhStats::retired},
      AhStatRow{"in_flight", "sends", "Sends that took an address and have not completed.", &AhStats::in_flight},
      AhStatRow{"handles", "handles", "Counted handles that the application holds.", &AhStats::handles},
      AhStatRow{"leases", "leases", "Leases that the application holds.", &AhStats::leases},
      AhStatRow{"oldest_ms", "ms", "Age of the oldest address handle on the device.", &AhStats::oldest_ms},
      AhStatRow{"hits", "events", "Addresses taken by senders, and acquisitions answered at once.", &AhStats::hits},
      AhStatRow{"misses", "events", "Look-ups that found nothing ready, and acquisitions that waited.",
                &AhStats::misses},
      AhStatRow{"negative_hits", "events", "Answered from the memory of a failure.", &AhStats::negative_hits},
      AhStatRow{"created", "events", "Address handles created.", &AhStats::created},
      AhStatRow{"failed", "events", "Attempts that ended in an error.", &AhStats::failed},
      AhStatRow{"destroyed", "events", "Address handles destroyed.", &AhStats::destroyed},
      AhStatRow{"replaced", "events", "Address handles swapped for a newer one.", &AhStats::replaced},
      AhStatRow{"stale", "events", "Address handles put in doubt and made anew.", &AhStats::stale},
      AhStatRow{"stale_gid", "events", "Of these: the source GID moved or went.", &AhStats::stale_gid},
      AhStatRow{"stale_lid", "events", "Of these: a LID changed.", &AhStats::stale_lid},
      AhStatRow{"stale_port", "events", "Of these: the port went down or came up.", &AhStats::stale_port},
      AhStatRow{"stale_pkey", "events", "Of these: the P_Key table changed.", &AhStats::stale_pkey},
      AhStatRow{"stale_subnet_manager", "events", "Of these: another subnet manager.", &AhStats::stale_subnet_manager},
      AhStatRow{"stale_reregister", "events", "Of these: the fabric asked all to register again.",
                &AhStats::stale_reregister},
      AhStatRow{"stale_neighbour", "events", "Of these: the next hop has another MAC address, or does not answer.",
                &AhStats::stale_neighbour},
      AhStatRow{"stale_address", "events", "Of these: an address of this host came or went.", &AhStats::stale_address},
      AhStatRow{"stale_route", "events", "Of these: the route leads elsewhere.", &AhStats::stale_route},
      AhStatRow{"stale_link", "events", "Of these: the interface changed.", &AhStats::stale_link},
      AhStatRow{"stale_notices_lost", "events", "Of these: notices of the network were lost.",
                &AhStats::stale_notices_lost},
      AhStatRow{"stale_age", "events", "Of these: older than max_age.", &AhStats::stale_age},
      AhStatRow{"rechecked", "events", "Addresses in doubt that were found still right.", &AhStats::rechecked},
      AhStatRow{"reclaimed_idle", "events", "Given back because unused for long.", &AhStats::reclaimed_idle},
      AhStatRow{"reclaimed_pressure", "events", "Given back to make room for others.", &AhStats::reclaimed_pressure},
      AhStatRow{"reclaimed_share", "events", "Given back to another tenant, being over its share.",
                &AhStats::reclaimed_share},
      AhStatRow{"paced", "events", "Creations that waited for the rate of the tenant.", &AhStats::paced},
      AhStatRow{"refused", "events", "Answers that a limit was reached.", &AhStats::refused},
      AhStatRow{"misused", "events", "Completions reported that no send accounts for.", &AhStats::misused},
  };
  return kRows;
}

}  // namespace verbena
