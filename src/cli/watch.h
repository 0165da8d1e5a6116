// Looks at running processes again and again, and shows each look beside the one before it.
#pragma once

#include <algorithm>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include "cli/clock.h"
#include "cli/exit_code.h"
#include "cli/stop_signal.h"
#include "verbena/result.h"

namespace verbena::cli {

// A look before this one: what it saw, and how long ago.
template <class Survey>
struct EarlierLook {
  Survey seen;
  Duration ago;
};

template <class Survey>
struct Watch {
  const char* subcommand;
  double interval_s;
  bool on_screen;  // text for a person: a terminal is cleared before each look. Else lines for a program
  std::function<Result<Survey>()> look;
  std::function<std::string(const Survey&, const std::optional<EarlierLook<Survey>>&)> render;
};

// A second at a time: a signal between the look at stop_requested() and the sleep is not slept over for longer.
inline void sleep_until_stopped(double seconds) {
  constexpr double kStep_s = 1;
  for (double left = seconds; left > 0 && !stop_requested(); left -= kStep_s) {
    ::poll(nullptr, 0, static_cast<int>(std::min(left, kStep_s) * 1000));
  }
}

// Until Ctrl-C, or nobody reads any more, or a look fails. The exit status.
template <class Survey>
int run_watch(const Watch<Survey>& watch) {
  catch_stop_signals();
  std::optional<EarlierLook<Survey>> earlier;
  Instant earlier_time;
  while (!stop_requested() && std::ferror(stdout) == 0) {
    const Instant time = now();
    auto seen = watch.look();
    if (!seen) return fail(watch.subcommand, seen.error());
    if (earlier) earlier->ago = time - earlier_time;
    if (watch.on_screen && ::isatty(STDOUT_FILENO) == 1) fmt::print("\x1b[H\x1b[2J");
    fmt::print("{}\n", watch.render(*seen, earlier));
    std::fflush(stdout);
    earlier = EarlierLook<Survey>{std::move(*seen), {}};
    earlier_time = time;
    sleep_until_stopped(watch.interval_s);
  }
  return kExitOk;
}

}  // namespace verbena::cli
