// Where a process tells about its address-handle directories: the abstract Unix socket (SOCK_SEQPACKET)
//
//     "\0verbena/1/directories/<pid>/<n>"     pid as the process sees it itself; n from 0, for containers with the same
//
// One request a packet, one byte; the answers come in the order of the requests:
//
//     'p' page      one packet 'p' with the descriptor of the counter page (counter_page.h), read only, when its values
//                   are those of now
//     'd' dump      packets of lines, each ended by '\n', words between tabs; the first line names the words; a packet
//                   of the one byte 0 ends it
//
// Another request ends the connection. The process answers its own user and root.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace verbena::host {

inline constexpr char kAskPage = 'p';
inline constexpr char kAskDump = 'd';
inline constexpr char kEndOfDump = '\0';
// The longest packet of a dump.
inline constexpr std::size_t kLongestDumpPacket = std::size_t{1} << 14;

struct ReportName {
  std::uint32_t pid = 0;
  std::uint32_t number = 0;

  friend bool operator==(const ReportName&, const ReportName&) = default;
};

// As sun_path takes it: a leading NUL, none at the end.
std::string to_socket_name(const ReportName& name);

// Nothing for a name of another program, of another version, or not written as above.
std::optional<ReportName> parse_report_name(std::string_view name);

}  // namespace verbena::host
