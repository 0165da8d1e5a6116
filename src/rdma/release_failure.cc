#include "verbena/release_failure.h"

#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

#include "rdma/verbs_error.h"
#include "verbena/verbs_object.h"

namespace verbena {

namespace {

struct Handler {
  std::mutex mutex;
  std::shared_ptr<const ReleaseFailureHandler> current;  // guarded by mutex; null: stderr
};

// Never destroyed: objects of static lifetime may report while the process ends.
Handler& handler() {
  static Handler* const instance = new Handler;
  return *instance;
}

}  // namespace

void set_release_failure_handler(ReleaseFailureHandler replacement) {
  std::shared_ptr<const ReleaseFailureHandler> next;
  if (replacement) next = std::make_shared<const ReleaseFailureHandler>(std::move(replacement));
  const std::lock_guard lock(handler().mutex);
  handler().current = std::move(next);
}

namespace detail {

Error release_error(const char* call, const std::string& what, int code) {
  return rdma::verbs_error(call, "of " + what, rdma::errno_of(code));
}

void report_release_failure(const Error& error) noexcept {
  std::shared_ptr<const ReleaseFailureHandler> current;
  {
    const std::lock_guard lock(handler().mutex);
    current = handler().current;
  }
  if (current) {
    (*current)(error);
  } else {
    std::fprintf(stderr, "verbena: not released: %s\n", error.message.c_str());
  }
}

}  // namespace detail

}  // namespace verbena
