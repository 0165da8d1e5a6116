#include "cli/stop_signal.h"

#include <atomic>
#include <csignal>

namespace verbena::cli {
namespace {

// Written by the handler, read by loops. Relaxed: nothing else is published with it.
std::atomic<bool> stop{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_stop_signal(int) {
  stop.store(true, std::memory_order_relaxed);
}

}  // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // no SA_RESTART: a wait must end
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
}

bool stop_requested() noexcept {
  return stop.load(std::memory_order_relaxed);
}

}  // namespace verbena::cli
