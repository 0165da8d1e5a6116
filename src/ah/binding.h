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
#include <memory>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "ah/ah_key.h"
#include "ah/attempt.h"
#include "ah/destination_key.h"
#include "verbena/gid_table.h"
#include "verbena/result.h"

namespace verbena::ah {

enum class EntryState : std::uint8_t { kCreating, kReady, kRetired };

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
  std::uint64_t begun_all = 0;  // Core's Epoch::all when its creation began
  std::int64_t created_ns = 0;
  std::int64_t active_ns = 0;     // when a scan last saw that it had been used
  std::uint64_t seen_stamps = 0;  // the sum of all stamps at that scan
};

struct alignas(64) Binding {
  explicit Binding(const DestinationKey& of) : key(of) {}

  // The line that senders read.
  const DestinationKey key;
  // Null: not ready. Written under Core's mutex, release; read by senders inside a section, acquire.
  std::atomic<Entry*> entry{nullptr};

  // From 0 to 1 under Core's mutex, or by who has a pin (Core::settle). Partner of the release decrement: the acquire
  // load in Core::is_unheld.
  alignas(64) std::atomic<std::uint32_t> handles{0};
  // Attempts. From 0 to 1 under Core's mutex only: pins == 0 and then handles == 0, read in this order under the mutex,
  // is stable there. Partner of the release decrement: the acquire load in Core::is_unheld.
  std::atomic<std::uint32_t> pins{0};

  // All below: guarded by Core's mutex.
  Binding* next_sharing = nullptr;
  std::shared_ptr<Attempt> attempt;   // queued or running; else null
  bool again = false;                 // something changed during the attempt: run another after it
  std::uint32_t failures = 0;         // in a row
  std::int64_t retry_at_ns = 0;       // where failures > 0: when it may be asked for again, not before
  std::int64_t unasked_at_ns = 0;     // where failures > 0: when the keeper tries again of itself
  std::unique_ptr<Error> last_error;  // null where there was none
  std::uint64_t generation = 0;       // how many addresses it has had
};

}  // namespace verbena::ah
