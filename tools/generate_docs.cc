// Prints the documents that are made from tables of the source: `settings`, `drops` or `verbs-support`, as Markdown.
// tools/generate-docs writes them to docs/, and checks that what is committed is what the tables say.
#include <algorithm>
#include <array>
#include <cerrno>
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
#include "engine/qp_state.h"
#include "verbs/support.h"

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

// --- verbs-support

using verbena::engine::QpState;
using verbena::engine::QpType;
using verbena::verbs::AttributeRow;
using verbena::verbs::SupportRow;

std::string support_row(const SupportRow& row) {
  return "| `" + cell(row.name) + "` | " + (row.error == 0 ? "yes" : "EOPNOTSUPP") + " | " + cell(row.words) + " |\n";
}

std::string short_name(QpState state) {
  constexpr std::array<std::string_view, verbena::engine::kQpStates> kShort{"RESET", "INIT", "RTR", "RTS",
                                                                            "SQD",   "SQE",  "ERR"};
  return std::string(kShort[static_cast<std::size_t>(state)]);
}

// The steps in which an attribute must or may be given, as a cell.
std::string steps_of(QpType type, const AttributeRow& row) {
  if (row.bit == verbena::engine::kAttrState) return "all";
  if ((verbena::verbs::ignored_attributes(static_cast<ibv_qp_type>(type)) & row.bit) != 0) return "not looked at";
  std::string must;
  std::string may;
  for (std::size_t from = 0; from < verbena::engine::kQpStates; ++from) {
    for (std::size_t to = 0; to < verbena::engine::kQpStates; ++to) {
      const auto& edge = verbena::engine::edge_of(type, static_cast<QpState>(from), static_cast<QpState>(to));
      const std::string step = short_name(static_cast<QpState>(from)) + "→" + short_name(static_cast<QpState>(to));
      const auto add = [&step](std::string& list) { list += (list.empty() ? "" : ", ") + step; };
      if (edge.valid && (edge.required & row.bit) != 0) add(must);
      if (edge.valid && (edge.optional & row.bit) != 0 && row.takes_value) add(may);
    }
  }
  if (must.empty() && may.empty()) return "no";
  const std::string separator = must.empty() || may.empty() ? "" : "; ";
  return (must.empty() ? "" : "**" + must + "**") + separator + may;
}

std::string attribute_table() {
  constexpr std::array kTypes{QpType::kRc,      QpType::kUc,         QpType::kUd,
                              QpType::kXrcSend, QpType::kXrcReceive, QpType::kRawPacket};
  std::string out = "| attribute |";
  for (const QpType type : kTypes) out += " " + std::string(name_of(type)) + " |";
  out += " values |\n|---|---|---|---|---|---|---|---|\n";
  for (const AttributeRow& row : verbena::verbs::kAttributeRows) {
    out += "| `" + cell(row.name) + "` |";
    for (const QpType type : kTypes) out += " " + steps_of(type, row) + " |";
    out += " " + cell(row.words) + " |\n";
  }
  return out;
}

std::string verbs_page() {
  std::string out =
      "# What of the verbs interface is there\n\n" + std::string(kNotice) +
      "\nEvery call of `<infiniband/verbs.h>` (libibverbs 44), every type of queue pair and every attribute of "
      "`ibv_modify_qp`\non the software RNIC: offered, or the errno that it is refused with. A call that answers with "
      "a "
      "pointer answers NULL and\nsets errno; any other returns the errno. The tables are those of "
      "`src/verbs/support.h`, and `tests/abi/support_test.cc`\ncalls what each row names and compares. What the "
      "objects "
      "do that a card does otherwise:\n[rnic-objects.md](rnic-objects.md). The calls of librdmacm: "
      "[connection-manager.md](connection-manager.md).\n\n## Types of queue pairs\n\n"
      "| type | offered | |\n|---|---|---|\n";
  for (const SupportRow& row : verbena::verbs::kQpTypeRows) out += support_row(row);
  out +=
      "\nAny other number is EINVAL.\n\n## Attributes of `ibv_modify_qp`\n\nBy step of the queue pair's life: **must "
      "be given**, may be given. What is neither, and a step that no row names and that\nis no step to RESET or ERR, "
      "is "
      "EINVAL; so is a value outside what the last column says. \"not looked at\": the attribute\nmay be given to "
      "either end of an XRC connection and counts at the other.\n\n" +
      attribute_table();
  std::size_t at = 0;
  for (const auto& section : verbena::verbs::kVerbSections) {
    out += "\n## " + std::string(section.title) + "\n\n| call | offered | |\n|---|---|---|\n";
    for (const std::size_t end = at + section.count; at != end; ++at) out += support_row(verbena::verbs::kVerbRows[at]);
  }
  return out;
}

struct Page {
  std::string_view name;
  std::string (*text)();
};
constexpr std::array<Page, 3> kPages{
    {{"settings", settings_page}, {"drops", drops_page}, {"verbs-support", verbs_page}}};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view name = argc == 2 ? argv[1] : "";
  const auto* const page =
      std::find_if(kPages.begin(), kPages.end(), [&](const Page& one) { return one.name == name; });
  if (page == kPages.end()) {
    std::fputs("usage: generate-docs settings|drops|verbs-support\n", stderr);
    return 2;
  }
  std::fputs(page->text().c_str(), stdout);
  return 0;
}
