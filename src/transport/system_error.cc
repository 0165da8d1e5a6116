#include "transport/system_error.h"

#include <cerrno>
#include <system_error>

#include <sys/resource.h>

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

std::string system_words(int number) {
  std::string words = std::generic_category().message(number);
  rlimit limit{};
  if (number == EMFILE && ::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    words += ", of which this process may have " + std::to_string(limit.rlim_cur) +
             " (ulimit -n, LimitNOFILE of a systemd unit)" +
             (limit.rlim_cur >= limit.rlim_max ? ", its hard limit: an administrator must raise that"
                                               : "; raise that, up to " + std::to_string(limit.rlim_max)) +
             ", or close what is not needed";
  } else if (number == EFBIG && ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    words += ", since this process may write files of " + std::to_string(limit.rlim_cur) +
             " bytes and no more (ulimit -f); raise that";
  } else if (number == ENFILE) {
    words += ", which is the limit of the whole host (sysctl fs.file-max)";
  }
  return words;
}

tl::unexpected<Error> system_failure(const std::string& what) {
  const int number = errno;
  return failure(code_of(number), what + ": " + system_words(number) + ".", number);
}

}  // namespace verbena::transport
