// An Error from errno.
#pragma once

#include <string>

#include "verbena/result.h"

namespace verbena::transport {

// `what` says what was tried, with which value; the system's words are put behind it. Reads errno first of all.
tl::unexpected<Error> system_failure(const std::string& what);

}  // namespace verbena::transport
