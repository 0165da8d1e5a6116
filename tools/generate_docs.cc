// Prints the documents that are made from tables of the source: `settings` or `drops`, as Markdown.
// tools/generate-docs writes them to docs/, and checks that what is committed is what the tables say.
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/drop.h"
#include "base/setting.h"
#include "device/object_kind.h"
#include "device/settings.h"
#include "device/traffic.h"

namespace {

using verbena::CounterRow;
using verbena::Side;

constexpr std::string_view kNotice = "<!-- Made by `make docs` from the tables named below. Do not edit. -->\n";

// A cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string counter_table(std::span<const CounterRow> rows) {
  std::string out = "| name | unit | counted by | meaning |\n|---|---|---|---|\n";
  for (const CounterRow& row : rows) {
    out += "| `" + cell(row.name) + "` | " + cell(row.unit) + " | " + std::string(side_word(row.side)) + " | " +
           cell(row.doc) + " |\n";
  }
  return out;
}

std::string settings_page() {
  std::string out =
      "# Settings of the software RNIC\n\n" + std::string(kNotice) +
      "\nEnvironment variables, read when a program first asks for the list of devices. `verbena run` has "
      "an option for\neach. A value that cannot be read is refused, in words. The table is `kSettingRows` "
      "in `src/device/settings.h`.\n\n| variable | value | default | meaning |\n|---|---|---|---|\n";
  for (const verbena::SettingRow& row : verbena::device::kSettingRows) {
    out += "| `" + std::string(row.variable) + "` | `" + cell(row.syntax) + "` | " + cell(row.standard) + " | " +
           cell(row.doc) + " |\n";
  }
  return out;
}

std::string drops_page() {
  std::string out = "# Drops and counters\n\n" + std::string(kNotice) +
                    "\nEvery datagram that vanishes has one of these names, and is counted where it vanished. `verbena "
                    "drops` reads the\ncounters of running programs from outside; `verbena drops --json` gives them to "
                    "programs. The names are stable.\n\n## Drops\n\nThe table is `kDropRows` in `src/base/drop.h`.\n\n";
  out += counter_table(std::span(verbena::kDropRows).subspan(1));
  out += "\n## Traffic\n\nThe table is `kTrafficRows` in `src/device/traffic.h`.\n\n";
  out += counter_table(verbena::device::kTrafficRows);
  out += "\n## Objects\n\nHow many there are now. The table is `kObjectRows` in `src/device/object_kind.h`.\n\n";
  std::vector<verbena::CounterRow> gauges;
  for (const auto& row : verbena::device::kObjectRows) gauges.push_back(row.gauge);
  out += counter_table(gauges);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view page = argc == 2 ? argv[1] : "";
  if (page != "settings" && page != "drops") {
    std::fputs("usage: generate-docs settings|drops\n", stderr);
    return 2;
  }
  std::fputs((page == "settings" ? settings_page() : drops_page()).c_str(), stdout);
  return 0;
}
