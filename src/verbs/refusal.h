// How this room says no: an errno, and the reason in words in the log.
//
// At the verbs edge a function that returns int returns a positive errno, one that returns a pointer returns null and
// sets errno, and nothing is thrown.
#pragma once

#include <cerrno>
#include <type_traits>

#include "device/log.h"
#include "verbena/result.h"

namespace verbena::verbs {

inline int errno_of(const Status& status) noexcept {
  return status ? 0 : device::report(status.error());
}

inline std::nullptr_t null_with(int error) noexcept {
  errno = error;
  return nullptr;
}
inline std::nullptr_t null_with(const Error& error) noexcept {
  return null_with(device::report(error));
}

// Runs `body`, which may run out of memory.
template <class Body>
auto contained(Body body) noexcept -> std::invoke_result_t<Body> {
  try {
    return body();
  } catch (...) {
    errno = ENOMEM;
    if constexpr (std::is_pointer_v<std::invoke_result_t<Body>>) {
      return nullptr;
    } else {
      return ENOMEM;
    }
  }
}

}  // namespace verbena::verbs
