// The one place where the tool reads time.
#pragma once

#include <chrono>

#include "base/instant.h"

namespace verbena::cli {

inline Instant now() noexcept {
  return {std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()).count()};
}

}  // namespace verbena::cli
