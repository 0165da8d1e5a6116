// Whether a failure was asked for: VERBENA_INJECT and VERBENA_LIMITS make calls fail, and who has forgotten that they
// are set looks for the cause elsewhere.
#pragma once

#include <string>
#include <string_view>

namespace verbena::cli {

// What to add to a message that names an errno, given the values of the two variables. Empty where neither makes calls
// fail in this way.
std::string rehearsal_note(std::string_view message, std::string_view inject, std::string_view limits);

}  // namespace verbena::cli
