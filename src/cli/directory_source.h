// The address-handle directories of the processes of this network namespace, asked from outside while they run
// (host/report_name.h). Nothing a process does, dies, sends or omits makes this fail or hang: it is left out where it
// is gone, and listed as silent where it is there and does not answer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/instant.h"
#include "host/counter_page.h"
#include "verbena/result.h"

namespace verbena::cli {

struct SilentDirectories {
  std::uint32_t pid = 0;
  std::string reason;
};

// One entry of a directory: what the process said, by the names it gave.
using DirectoryEntry = std::map<std::string, std::string>;

struct DirectoryProcess {
  std::uint32_t pid = 0;          // as seen from here; as the process says where it cannot be seen from here
  host::CounterPageReading page;  // one block a directory
  std::vector<DirectoryEntry> entries;
};

struct DirectorySurvey {
  std::vector<DirectoryProcess> processes;  // by pid
  std::vector<SilentDirectories> silent;
  std::optional<Error> shortage;  // of descriptors of this process: not all could be asked
};

enum class Ask { kCounts, kEntries };

// Asks all, or one process (pid != 0) and no other, waiting for each at most `patience`.
// Errors: kUnavailable where /proc/net/unix cannot be read; kExhausted for want of a descriptor; kNotFound where `pid`
// shows no directory.
Result<DirectorySurvey> survey_directories(Ask what, std::uint32_t pid, Duration patience);

// Reads the lines of a dump: the first names the words of the others. Lines with another number of words are left out.
std::vector<DirectoryEntry> parse_dump(std::string_view text);

}  // namespace verbena::cli
