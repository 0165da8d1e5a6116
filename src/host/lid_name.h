// How the InfiniBand ports of one network namespace keep their LIDs apart: a process that has a port with the LIDs
// first..last listens on the abstract Unix socket
//
//     "\0verbena/1/lid/<first>/<last>/<port GUID>/<pid>[/<n>]"  decimal, the GUID in 16 hexadecimal digits
//
// Several processes may share a port: then the GUID and the LIDs are the same. Where they are in several PID namespaces
// and have one number, `n` from 1 on tells them apart. Nobody connects; the kernel frees the name when the
// process dies, and /proc/net/unix lists it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace verbena::host {

struct LidHolder {
  std::uint16_t first = 0;
  std::uint16_t last = 0;
  std::uint64_t guid = 0;
  std::uint32_t pid = 0;   // as the holder sees it
  std::uint32_t copy = 0;  // n; 0: not in the name

  friend bool operator==(const LidHolder&, const LidHolder&) = default;
};

// Whether the two cannot be in one subnet: different ports with a LID in common, or one port with two ranges that have.
constexpr bool clash(const LidHolder& a, const LidHolder& b) noexcept {
  const bool same_port = a.guid == b.guid && a.first == b.first && a.last == b.last;
  return !same_port && a.first <= b.last && b.first <= a.last;
}

// With its leading NUL, as sun_path takes it; its length counts, there is no NUL at the end.
std::string lid_name(const LidHolder& holder);

// Nothing for a name of another kind or version, or with LIDs that no port can have.
std::optional<LidHolder> parse_lid_name(std::string_view name);

// Reads a line of /proc/net/unix.
std::optional<LidHolder> parse_lid_line(std::string_view line);

}  // namespace verbena::host
