// A line of /proc/net/unix, where the abstract sockets of this network namespace are listed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace verbena::host {

struct ListeningSocket {
  std::string name;         // with its leading NUL, as sun_path has it
  std::uint64_t inode = 0;  // what /proc/<pid>/fd shows as "socket:[inode]"
};

// Nothing unless it is an abstract socket that listens: connections to it carry the same name.
std::optional<ListeningSocket> parse_listening_socket(std::string_view line);

// `text` as a decimal number without leading zeros, as names hold it.
std::optional<std::uint32_t> parse_name_number(std::string_view text);

}  // namespace verbena::host
