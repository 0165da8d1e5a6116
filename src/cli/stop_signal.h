// Ctrl-C as a wish to stop, not as an end: the run stops, and what it has found out so far is still printed.
#pragma once

namespace verbena::cli {

// From now on SIGINT, SIGTERM and SIGHUP only set what stop_requested() tells, and end waits early with EINTR. A second
// one ends the process at once. May be called more than once.
void catch_stop_signals();

// Thread-safety: any thread.
bool stop_requested() noexcept;

}  // namespace verbena::cli
