// Result<T>: a value, or an Error that says what was wrong, with which value, and what to do.
#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace verbena {

enum class ErrorCode {
  kInvalidArgument,  // the caller's value is wrong; retrying does not help
  kNotFound,         // no such device, port, GID, name
  kUnreachable,      // no route, no neighbour, families that do not match
  kTimedOut,         // the deadline passed
  kExhausted,        // a limit of the device, the process or a budget
  kBusy,             // still in use
  kPermission,       // not allowed for this user
  kUnsupported,      // the device or this build cannot
  kUnavailable,      // gone, closed, or not yet there
  kInternal,         // a bug in Verbena
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  int system_errno = 0;  // as the system or the verbs call gave it; 0 where none did
  std::string message;   // one sentence: what, with which value, what to do
};

template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

using Status = Result<void>;

inline tl::unexpected<Error> failure(ErrorCode code, std::string message, int system_errno = 0) {
  return tl::make_unexpected(Error{code, system_errno, std::move(message)});
}

}  // namespace verbena
