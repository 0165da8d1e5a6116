// What happens to an error that a destructor meets: it is reported, never lost.
//
// close() of an owning type returns the error. A destructor cannot, so it hands the error to one handler for the whole
// process. Without a handler the error is written to stderr, one line each.
#pragma once

#include <functional>

#include "verbena/export.h"
#include "verbena/result.h"

namespace verbena {

using ReleaseFailureHandler = std::function<void(const Error&)>;

// Replaces the handler; an empty one brings back stderr.
// Thread-safety: any thread; the handler is called on the thread that destroys, and may be called by several at once.
VERBENA_API void set_release_failure_handler(ReleaseFailureHandler handler);

}  // namespace verbena
