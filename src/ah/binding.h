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

#include "ah/attempt.h"
#include "ah/destination_key.h"
#include "ah/holding.h"
#include "ah/path.h"
#include "verbena/ah_event.h"
#include "verbena/gid_table.h"
#include "verbena/network_change.h"
#include "verbena/result.h"

namespace verbena::ah {

enum class EntryState : std::uint8_t { kCreating, kReady, kRetired };

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// Where a datagram goes first. What the device was told of it is in the entry: an address is as good as that.
struct NextHop {
  Gid address;  // the gateway, or the destination itself; zero: none is resolved (multicast, this host, LID)
  std::uint32_t netdev = 0;  // 0: unknown
};

// Never 0 but for no next hop.
inline std::uint32_t hop_tag(const Gid& hop) noexcept {
  return hop.is_zero() ? 0 : static_cast<std::uint32_t>(std::hash<Gid>{}(hop)) | 1U;
}

// 64 bytes, with what senders read in front. What can be had from the binding, the path or the slot is not kept here:
// see core_derive.cc.
struct alignas(64) Entry {
  // Constant once a binding points here; read by senders.
  ibv_ah* address = nullptr;
  std::uint32_t slot = 0;  // its place in every sender's stamps

  // Taken under Core's mutex from a linked entry; dropped anywhere. Partner: the acquire load in Core::sweep.
  std::atomic<std::uint32_t> leases{0};

  // All below: guarded by Core's mutex, but `graced`.
  // kCreating: the one for which it is made. kReady: the list of those that point here, by Binding::next_sharing.
  // kRetired: null.
  Binding* first_binding = nullptr;
  const Path* path = nullptr;
  std::int64_t created_ns = 0;
  std::uint32_t seen_stamps = 0;  // of the sum of all stamps, at the last scan: the lower half
  std::uint32_t next_in_index = 0;
  std::uint32_t active_us_low = 0;
  std::uint16_t active_us_high = 0;
  std::uint16_t begun_all = 0;  // Core's Epoch::all when its creation began: the lower quarter
  MacAddress next_hop_mac{};    // as the device was told; zero: the kernel had none
  EntryState state : 2 = EntryState::kCreating;
  bool stale : 1 = false;                // a replacement is wanted; no new binding may share it
  bool mac_known : 1 = false;            // the kernel said what it has for the next hop: also that it has nothing
  bool mac_moved : 1 = false;            // it said different things while the address was made
  bool neighbour_forgotten : 1 = false;  // the kernel no longer watches the next hop
  bool aged : 1 = false;                 // its replacement was asked for because of its age
  bool neighbour_failed : 1 = false;     // while it was made the kernel gave the next hop up
  bool graced = false;  // retired, and no sender can be reading it any more; guarded by Core's sweep_mutex_

  // When a scan last saw that it had been used.
  std::int64_t active_ns() const noexcept {
    return static_cast<std::int64_t>(active_us_low | (std::uint64_t{active_us_high} << 32)) * 1000;
  }
  void set_active(std::int64_t now_ns) noexcept {
    const auto us = static_cast<std::uint64_t>(now_ns) / 1000;
    active_us_low = static_cast<std::uint32_t>(us);
    active_us_high = static_cast<std::uint16_t>(us >> 32);
  }
  std::optional<MacAddress> mac() const noexcept {
    return next_hop_mac == MacAddress{} ? std::nullopt : std::optional(next_hop_mac);
  }
  void set_mac(const std::optional<MacAddress>& mac) noexcept { next_hop_mac = mac.value_or(MacAddress{}); }
};

static_assert(sizeof(Entry) == 64, "one line");

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
  bool charged = false;              // its account pays for it; else its attempt waits for memory, or has failed to
  bool again = false;                // something changed during the attempt: run another after it
  AhCause cause = AhCause::kNone;    // of the attempt, and of the one after it
};

static_assert(sizeof(Binding) == 128, "two lines: what senders read, and the rest");

}  // namespace verbena::ah
