// An Error from errno.
#pragma once

#include <string>

#include "verbena/result.h"

namespace verbena::transport {

// The system's words for an errno; for a limit on descriptors also which one it is, its number, and what raises it.
std::string system_words(int number);

// `what` says what was tried, with which value; the system's words are put behind it. Reads errno first of all.
tl::unexpected<Error> system_failure(const std::string& what);

}  // namespace verbena::transport
