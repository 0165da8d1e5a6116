// What a counter is called, in which unit it counts and what it means: one row each, from which the shared-memory
// page, the command line, the metrics and the documentation are made.
#pragma once

#include <string_view>

namespace verbena {

enum class Side { kSender, kReceiver, kBoth };

// Who counts it, in one word.
constexpr std::string_view side_word(Side side) noexcept {
  switch (side) {
    case Side::kSender:
      return "sender";
    case Side::kReceiver:
      return "receiver";
    case Side::kBoth:
      return "both";
  }
  return "both";
}

struct CounterRow {
  std::string_view name;  // snake_case, stable: it is a metric name and a key in JSON
  std::string_view unit;  // "packets", "bytes", "events"
  Side side;
  std::string_view doc;  // one sentence: what happened, and what to look at
};

}  // namespace verbena
