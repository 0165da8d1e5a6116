#include "transport/system_error.h"

#include <cerrno>
#include <system_error>

namespace verbena::transport {
namespace {

ErrorCode code_of(int number) noexcept {
  switch (number) {
    case EACCES:
    case EPERM:
      return ErrorCode::kPermission;
    case EADDRINUSE:
    case EBUSY:
      return ErrorCode::kBusy;
    case EADDRNOTAVAIL:
    case ENODEV:
    case ENOENT:
      return ErrorCode::kNotFound;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case ENOSPC:
      return ErrorCode::kExhausted;
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTUNREACH:
      return ErrorCode::kUnreachable;
    case EINVAL:
      return ErrorCode::kInvalidArgument;
    case ENOSYS:
    case EOPNOTSUPP:
    case EAFNOSUPPORT:
    case ENOPROTOOPT:
      return ErrorCode::kUnsupported;
    default:
      return ErrorCode::kUnavailable;
  }
}

}  // namespace

tl::unexpected<Error> system_failure(const std::string& what) {
  const int number = errno;
  return failure(code_of(number), what + ": " + std::generic_category().message(number) + ".", number);
}

}  // namespace verbena::transport
