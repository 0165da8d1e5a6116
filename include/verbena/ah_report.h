// What a directory tells about itself: rows, counts, and the effective attributes of an address.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "verbena/ah_event.h"
#include "verbena/call_site.h"
#include "verbena/destination.h"
#include "verbena/export.h"
#include "verbena/gid_table.h"
#include "verbena/neighbour.h"
#include "verbena/rate.h"

namespace verbena {

// What a query of an address handle would answer, had verbs one.
struct EffectiveAddress {
  Destination destination;   // as asked for
  GidEntry source;           // the value and type that were chosen, and where they stood at creation
  ibv_ah_attr attributes{};  // as the device left them: what was given to ibv_create_ah, with its changes
  // What the device changed of what it was given: "grh.hop_limit: 255 asked for, 64 made". Of the kernel's own device
  // (rxe) also what it does not tell: the hop limit is that of the kernel's route. Another device that changes an
  // address without telling leaves no trace here.
  std::vector<std::string> changes;
  std::string explanation;  // why this source
  std::chrono::nanoseconds age{};
  std::uint64_t generation = 0;  // how often this destination's address handle was replaced
  RateAdvice rate;               // its static rate against the speed of the port
};

enum class AhState : std::uint8_t {
  kPending,     // asked for; being resolved or created
  kReady,       // in use or idle
  kRefreshing,  // ready, and a replacement is on its way
  kFailed,      // the last attempt failed; tried again after its back-off, when asked
  kRetired,     // replaced or reclaimed; waits for work that names it
};

VERBENA_API const char* to_string(AhState state) noexcept;

// One row for a tool.
struct AhRow {
  Destination destination;
  AhState state = AhState::kPending;
  GidEntry source;
  std::uint64_t handles = 0;  // counted handles held
  std::uint64_t leases = 0;   // leases held on its address handle
  bool in_flight = false;     // a posted and not completed work request names it
  std::chrono::nanoseconds age{};
  std::uint32_t failures = 0;       // in a row
  std::string last_error;           // empty where there was none
  std::chrono::nanoseconds held{};  // how long the oldest of its handles and leases is held
  CallSite held_at;                 // the call that took it; line 0 where nothing is held
  Gid next_hop;                     // the gateway, or the destination itself; zero: none was needed
  std::optional<MacAddress> mac;    // of the next hop, as the device was told; empty: unknown
  AhCause cause = AhCause::kNone;   // of the last doubt about its address
};

// Counted handles of one destination, or leases on its address, that are held; all were taken at one place within
// about a second.
struct AhHolding {
  Destination destination;
  CallSite place;                   // the call that took them; a copy of a handle has the place of the original
  std::chrono::nanoseconds held{};  // how long the first of them is held
  std::uint64_t count = 0;
  bool lease = false;
};

// "2 handle(s) of 10.0.0.2, held for 61.0 s (taken at src/main.cc:17, in run)"
VERBENA_API std::string in_words(const AhHolding& holding);

// What a sender has not been told to be completed: the positions above `completed`, up to `position`.
struct AhSenderRest {
  std::uint64_t completed = 0;
  std::uint64_t position = 0;
  std::vector<Destination> destinations;  // whose addresses these may name
  CallSite place;                         // the call of make_sender()
  std::uint64_t outstanding() const noexcept { return position > completed ? position - completed : 0; }
  bool empty() const noexcept { return outstanding() == 0; }
};

// "2 work request(s) not completed, positions 9 to 10, to 10.0.0.2 (sender made at src/main.cc:17, in run)"
VERBENA_API std::string in_words(const AhSenderRest& rest);

// Powers of two: bucket i counts creations that took [2^i, 2^(i+1)) microseconds; the last takes all above.
using LatencyHistogram = std::array<std::uint64_t, 24>;

struct AhStats {
  std::uint64_t live = 0;        // address handles that exist on the device, retired ones included
  std::uint64_t ready = 0;       // destinations that a look-up finds
  std::uint64_t pending = 0;     // not ready: being resolved or created, or queued for it
  std::uint64_t refreshing = 0;  // ready, and looked at again or made anew, or queued for it
  std::uint64_t negative = 0;    // remembered as failed
  std::uint64_t retired = 0;     // waiting for work in flight or for a lease
  std::uint64_t in_flight = 0;   // work requests that took an address and have not completed
  std::uint64_t handles = 0;     // counted handles held
  std::uint64_t leases = 0;
  std::uint64_t oldest_ms = 0;      // age of the oldest address handle on the device
  std::uint64_t hits = 0;           // addresses taken by senders, and acquisitions answered at once
  std::uint64_t misses = 0;         // look-ups by senders that found nothing ready, and acquisitions that had to wait
  std::uint64_t negative_hits = 0;  // answered from the memory of a failure
  std::uint64_t created = 0;
  std::uint64_t failed = 0;  // attempts that ended in an error
  std::uint64_t destroyed = 0;
  std::uint64_t replaced = 0;  // address handles swapped for a newer one
  std::uint64_t stale = 0;     // address handles put in doubt and made anew: the sum of those below
  std::uint64_t stale_gid = 0;
  std::uint64_t stale_lid = 0;
  std::uint64_t stale_port = 0;
  std::uint64_t stale_pkey = 0;
  std::uint64_t stale_subnet_manager = 0;
  std::uint64_t stale_reregister = 0;
  std::uint64_t stale_neighbour = 0;
  std::uint64_t stale_address = 0;
  std::uint64_t stale_route = 0;
  std::uint64_t stale_link = 0;
  std::uint64_t stale_notices_lost = 0;
  std::uint64_t stale_age = 0;
  std::uint64_t rechecked = 0;  // attempts that found the address still right
  std::uint64_t reclaimed_idle = 0;
  std::uint64_t reclaimed_pressure = 0;  // for room in its own directory, or another of its tenant
  std::uint64_t reclaimed_share = 0;     // for another tenant, being over its own share
  std::uint64_t paced = 0;               // creations that waited for the tenant's rate
  std::uint64_t refused = 0;             // kExhausted answers
  std::uint64_t misused = 0;             // completions reported that no send accounts for
  LatencyHistogram creation_us{};
};

// One row for each count of AhStats: its name is a key in JSON and a metric.
struct AhStatRow {
  const char* name;
  const char* unit;
  const char* doc;
  std::uint64_t AhStats::*value;
};

VERBENA_API std::span<const AhStatRow> ah_stat_rows() noexcept;

// What a close left behind. Empty: all is given back.
struct AhLeftover {
  std::vector<AhRow> rows;            // address handles not destroyed, and why: leases, in_flight
  std::uint64_t handles = 0;          // counted handles still held; they are safe to drop, and find nothing any more
  std::vector<AhHolding> held;        // these handles and the leases, by place, the longest held first
  std::vector<AhSenderRest> senders;  // those with work in flight
  // A call into the device, or a look-up in the network, has not returned: the domain is to stay. Close again.
  bool calls_under_way = false;
  bool empty() const noexcept { return rows.empty() && handles == 0 && !calls_under_way; }
};

// What keeps each address handle on the device, and who holds on.
VERBENA_API std::string in_words(const AhLeftover& left);

}  // namespace verbena
