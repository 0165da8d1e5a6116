// Whether a failure was asked for: VERBENA_INJECT and VERBENA_LIMITS make calls fail, and who has forgotten that they
// are set looks for the cause elsewhere.
#pragma once

#include <string>
#include <string_view>

#include "verbena/result.h"

namespace verbena::cli {

// What to add to a message that names an errno, given the values of the two variables. Empty where neither makes calls
// fail in this way.
std::string rehearsal_note(std::string_view message, std::string_view inject, std::string_view limits);

// The same for an error as a whole: a deadline that passed may come from delays that were asked for.
std::string rehearsal_note(const Error& error, std::string_view inject, std::string_view limits);

}  // namespace verbena::cli
