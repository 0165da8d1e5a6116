#include "cli/doctor_report.h"

#include <algorithm>
#include <array>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/drop_report.h"
#include "cli/exit_code.h"

namespace verbena::cli {
namespace {

constexpr std::size_t kNarrowest = 60;
constexpr std::size_t kTextColumn = 29;  // behind result and check

const char* color_of(Severity severity) {
  switch (severity) {
    case Severity::kGood:
      return "\x1b[32m";
    case Severity::kNote:
      return "\x1b[36m";
    case Severity::kWarning:
      return "\x1b[33m";
    case Severity::kFailure:
      return "\x1b[31m";
  }
  return "";
}

std::string result_word(Severity severity, bool color) {
  const std::string word = fmt::format("{:<8}", to_string(severity));
  return color ? color_of(severity) + word + "\x1b[0m" : word;
}

void append_block(std::string& text, const std::string& label, const std::string& words, std::size_t width) {
  if (words.empty()) return;
  const std::size_t indent = kTextColumn + label.size();
  text += std::string(kTextColumn, ' ') + label + wrapped(printable(words), indent, width) + '\n';
}

void append_finding(std::string& text, const Finding& finding, const DoctorStyle& style) {
  const std::size_t width = std::max(style.width, kNarrowest);
  const std::string seen = finding.subject.empty() ? finding.evidence : finding.subject + ": " + finding.evidence;
  text += fmt::format("  {}  {:<17}{}\n", result_word(finding.severity, style.color), finding.check,
                      wrapped(printable(seen), kTextColumn, width));
  append_block(text, "why: ", finding.cause, width);
  append_block(text, "do:  ", finding.remedy, width);
}

}  // namespace

int exit_code_of(const std::vector<Finding>& findings) noexcept {
  const Severity severity = worst(findings);
  if (severity == Severity::kFailure) return kExitFailed;
  return severity == Severity::kWarning ? kExitWarning : kExitOk;
}

std::string wrapped(const std::string& text, std::size_t indent, std::size_t width) {
  std::istringstream words(text);
  std::string out;
  std::size_t column = indent;
  for (std::string word; words >> word;) {
    if (!out.empty() && column + 1 + word.size() > width) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!out.empty()) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string render_findings(const std::vector<Finding>& findings, const DoctorStyle& style) {
  std::string text;
  std::array<std::size_t, 4> counts{};
  for (const Finding& finding : findings) {
    ++counts[static_cast<std::size_t>(finding.severity)];
    if (style.problems_only && finding.severity == Severity::kGood) continue;
    append_finding(text, finding, style);
  }
  const auto plural = [](std::size_t count) { return count == 1 ? "" : "s"; };
  return text + fmt::format("{} good, {} note{}, {} warning{}, {} failure{}\n", counts[0], counts[1], plural(counts[1]),
                            counts[2], plural(counts[2]), counts[3], plural(counts[3]));
}

nlohmann::json findings_to_json(const std::vector<Finding>& findings, const std::string& peer) {
  auto list = nlohmann::json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"check", finding.check},
                    {"result", to_string(finding.severity)},
                    {"subject", finding.subject},
                    {"evidence", finding.evidence},
                    {"cause", finding.cause},
                    {"remedy", finding.remedy}});
  }
  nlohmann::json json{{"worst", to_string(worst(findings))}, {"findings", std::move(list)}};
  json["peer"] = peer.empty() ? nlohmann::json(nullptr) : nlohmann::json(peer);
  return json;
}

}  // namespace verbena::cli
