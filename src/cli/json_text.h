// JSON as the tool prints it. Names that are no UTF-8 (a process may call itself anything) are repaired, not refused.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace verbena::cli {

// Over several lines, for people and programs.
std::string json_text(const nlohmann::json& value);
// On one line.
std::string json_line(const nlohmann::json& value);

}  // namespace verbena::cli
