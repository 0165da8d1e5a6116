// What the doctor found, for people and for programs. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "verbena/preflight.h"

namespace verbena::cli {

inline constexpr int kExitWarning = 3;  // `verbena doctor` only

struct DoctorStyle {
  bool color = false;
  bool problems_only = false;
  std::size_t width = 120;  // columns of the terminal
};

// 0 where all is good or a note, 3 where something is a warning, 1 where something is a failure.
int exit_code_of(const std::vector<Finding>& findings) noexcept;

// A line for each finding, with cause and remedy below where there are any; a summary at the end.
std::string render_findings(const std::vector<Finding>& findings, const DoctorStyle& style);

// {"peer", "worst", "findings": [{"check", "result", "subject", "evidence", "cause", "remedy"}]}.
nlohmann::json findings_to_json(const std::vector<Finding>& findings, const std::string& peer);

// `text` broken between words so that no line is longer than `width`; lines but the first begin with `indent` spaces.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width);

}  // namespace verbena::cli
