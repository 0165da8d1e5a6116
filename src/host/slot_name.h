// How processes of one network namespace find each other: a process that holds slot n listens on the abstract
// Unix socket (SOCK_SEQPACKET)
//
//     "\0verbena/1/slot/<n>"        n in decimal, 1..255; the first number is the version of this protocol
//
// The kernel makes the name unique, scopes it to the network namespace and frees it when the process dies. Who is
// there is read from /proc/net/unix, where the leading NUL is shown as '@'.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/strong.h"

namespace verbena::host {

inline constexpr unsigned kProtocolVersion = 1;
inline constexpr Slot kManagementSlot{0};
inline constexpr unsigned kFirstSlot = 1;
inline constexpr unsigned kLastSlot = 255;
inline constexpr unsigned kSlotCount = kLastSlot - kFirstSlot + 1;

// The `attempt`-th slot to try when the search begins at `offset`: every slot once in kSlotCount attempts.
constexpr Slot slot_to_try(std::uint32_t offset, unsigned attempt) noexcept {
  return Slot(static_cast<std::uint8_t>(kFirstSlot + (std::uint64_t{offset} + attempt) % kSlotCount));
}

// The name with its leading NUL, as sun_path takes it; its length counts, there is no NUL at the end.
std::string slot_name(Slot slot);

// Nothing for a name of another program, of another version, or not written as slot_name() writes it.
std::optional<Slot> parse_slot_name(std::string_view name);

struct SlotListing {
  Slot slot;
  std::uint64_t inode = 0;  // of the listening socket: what /proc/<pid>/fd shows as "socket:[inode]"

  friend bool operator==(const SlotListing&, const SlotListing&) = default;
};

// Reads one line of /proc/net/unix. Nothing unless it is a slot's *listening* socket: connections to a slot carry
// the same name.
std::optional<SlotListing> parse_unix_socket_line(std::string_view line);

}  // namespace verbena::host
