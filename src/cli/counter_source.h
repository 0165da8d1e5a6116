// The counters of the processes that use the software RNIC, read from outside while they run.
//
// Every such process listens on an abstract Unix socket for each slot it holds (host/slot_name.h). To survey them: list
// the sockets in /proc/net/unix, connect to all, ask each for its counter page (host/hello.h), wait for the answers
// together, and copy the pages. Nothing a process does, dies, sends or omits makes the survey fail or hang: it is left
// out where it is gone, and listed as silent where it is there and gave no counters.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/instant.h"
#include "base/strong.h"
#include "host/counter_page.h"
#include "verbena/result.h"

namespace verbena::cli {

struct ProcessCounters {
  std::uint32_t pid = 0;    // as seen from here; as the process says where it cannot be seen from here
  std::vector<Slot> slots;  // in ascending order
  host::CounterPageReading page;
};

struct SilentProcess {
  Slot slot;
  std::uint32_t pid = 0;  // 0 where it cannot be seen from here
  std::string reason;
};

struct CounterSurvey {
  std::vector<ProcessCounters> processes;  // by pid
  std::vector<SilentProcess> silent;       // by slot
  std::optional<Error> shortage;           // of descriptors of this process: not all could be asked
};

// The slots in use, in ascending order, from the lines of /proc/net/unix.
std::vector<Slot> listed_slots(std::span<const std::string> proc_net_unix);

// Asks every process of this network namespace; waits for all answers together, at most for `patience`.
// Errors: kUnavailable where /proc/net/unix cannot be read, kExhausted for want of a descriptor.
Result<CounterSurvey> survey_counters(Duration patience);

// As above, for these slots.
CounterSurvey survey_counters(std::span<const Slot> slots, Duration patience);

}  // namespace verbena::cli
