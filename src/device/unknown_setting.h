// Variables that look like settings of the software RNIC and are none: most likely a typing error, which would else
// change nothing and say nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace verbena::device {

// What to tell about an environment variable, with the setting whose name is nearest. Nothing for a setting, for a
// variable without the prefix VERBENA_, and for what others put there: this project's tests and build, and Kubernetes,
// which tells each container the services of its namespace (VERBENA_SERVICE_HOST for one called verbena).
std::optional<std::string> explain_unknown_setting(std::string_view variable);

}  // namespace verbena::device
