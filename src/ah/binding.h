// What a directory knows: bindings (a destination, as asked for) and entries (an address handle on the device).
//
//   destination --table--> Binding --atomic pointer--> Entry --> ibv_ah
//
// A replacement swaps the pointer: the table, the handles and the senders need not know. Two destinations that come to
// the same attributes and source share one entry.
//
//   Entry:   kCreating -> kReady -> kRetired -> gone
//                 \________________/
// Retired means unlinked from every binding. Destroyed is another step: after a grace period no sender can still be
// reading the pointer, and what each sender took is in its stamps; when these are completed, nothing names the address.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "ah/ah_key.h"
#include "ah/attempt.h"
#include "ah/destination_key.h"
#include "ah/holding.h"
#include "verbena/ah_event.h"
#include "verbena/gid_table.h"
#include "verbena/network_change.h"
#include "verbena/result.h"

namespace verbena::ah {

enum class EntryState : std::uint8_t { kCreating, kReady, kRetired };

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// Where a datagram goes first, and what the device was told of it. An address is as good as that.
struct NextHop {
  Gid address;  // the gateway, or the destination itself; zero: none is resolved (multicast, this host, LID)
  std::uint32_t netdev = 0;  // 0: unknown
  bool mac_known = false;    // `mac` is what the kernel said: also that it has none
  bool mac_moved = false;    // it said different things while the address was made
  std::optional<MacAddress> mac;
};

// Never 0 but for no next hop.
inline std::uint32_t hop_tag(const Gid& hop) noexcept {
  return hop.is_zero() ? 0 : static_cast<std::uint32_t>(std::hash<Gid>{}(hop)) | 1U;
}

struct Entry {
  // Constant once a binding points here; read by senders.
  ibv_ah* address = nullptr;
  std::uint32_t slot = 0;  // its place in every sender's stamps

  // Taken under Core's mutex from a linked entry; dropped anywhere. Partner: the acquire load in Core::sweep.
  std::atomic<std::uint32_t> leases{0};

  // All below: guarded by Core's mutex.
  EntryState state = EntryState::kCreating;
  bool stale = false;                // a replacement is wanted; no new binding may share it
  bool source_gone = false;          // its source GID is no longer there
  bool graced = false;               // retired, and no sender can be reading it any more
  Binding* first_binding = nullptr;  // the list of those that point here, by Binding::next_sharing
  std::vector<Binding*> waiters;     // while kCreating: who else wants it
  AhKey key;
  GidEntry source;
  ibv_ah_attr attributes{};
  std::string explanation;
  NextHop hop;
  std::int64_t due_ns = kNever;  // when it is made anew, whatever happened
  std::uint64_t begun_all = 0;   // Core's Epoch::all when its creation began
  std::int64_t created_ns = 0;
  std::int64_t active_ns = 0;     // when a scan last saw that it had been used
  std::uint64_t seen_stamps = 0;  // the sum of all stamps at that scan
};

// What was asked for, as far as the device was told.
Destination destination_of(const Entry& entry) noexcept;

// Why a binding has no address, or not the one it should have. Few have that, so it is not in Binding.
struct Trouble {
  std::uint32_t failures = 0;      // in a row
  std::int64_t since_ns = 0;       // of the first
  std::int64_t retry_at_ns = 0;    // when it may be asked for again, not before
  std::int64_t unasked_at_ns = 0;  // when the keeper tries again of itself
  Gid next_hop;                    // where it failed; zero where it did not come so far
  Error error;                     // of the last
};

struct alignas(64) Binding {
  explicit Binding(const DestinationKey& of) : key(of) {}

  // The line that senders read.
  const DestinationKey key;
  // Null: not ready. Written under Core's mutex, release; read by senders inside a section, acquire.
  std::atomic<Entry*> entry{nullptr};
  std::uint64_t generation = 0;  // how many it has had; guarded by Core's mutex, written only beside the one above

  // From 0 to 1 under Core's mutex. Partner of the release decrement: the acquire load in Core::is_unheld.
  alignas(64) std::atomic<std::uint32_t> handles{0};
  // Attempts. From 0 to 1 under Core's mutex only: pins == 0 and then handles == 0, read in this order under the mutex,
  // is stable there. Partner of the release decrement: the acquire load in Core::is_unheld.
  std::atomic<std::uint32_t> pins{0};

  Holding holding;  // of those handles, the first record (holding.h)

  // All below: guarded by Core's mutex.
  Binding* next_sharing = nullptr;
  std::shared_ptr<Attempt> attempt;  // queued or running; else null
  std::unique_ptr<Trouble> trouble;  // null: all is well
  bool again = false;                // something changed during the attempt: run another after it
  AhCause cause = AhCause::kNone;    // of the attempt, and of the one after it
};

static_assert(sizeof(Binding) == 128, "two lines: what senders read, and the rest");

}  // namespace verbena::ah
