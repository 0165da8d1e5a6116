// What a counter is called, in which unit it counts and what it means: one row each, from which the shared-memory
// page, the command line, the metrics and the documentation are made.
#pragma once

#include <string_view>

namespace verbena {

enum class Side { kSender, kReceiver, kBoth };

struct CounterRow {
  std::string_view name;  // snake_case, stable: it is a metric name and a key in JSON
  std::string_view unit;  // "packets", "bytes", "events"
  Side side;
  std::string_view doc;  // one sentence: what happened, and what to look at
};

}  // namespace verbena
