#include "rdma/verbs_error.h"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <sys/resource.h>

namespace verbena::rdma {

ErrorCode code_of(int system_errno) noexcept {
  switch (system_errno) {
    case EINVAL:
    case ERANGE:
    case EFAULT:
      return ErrorCode::kInvalidArgument;
    case ENODEV:
    case ENXIO:
    case ENOENT:
    case ENODATA:
      return ErrorCode::kNotFound;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case ETIMEDOUT:  // of a neighbour that does not answer: no deadline of ours
    case EADDRNOTAVAIL:
      return ErrorCode::kUnreachable;
    case ENOMEM:
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case ENOBUFS:
      return ErrorCode::kExhausted;
    case EBUSY:
      return ErrorCode::kBusy;
    case EPERM:
    case EACCES:
      return ErrorCode::kPermission;
    case EOPNOTSUPP:
    case ENOSYS:
    case EPROTONOSUPPORT:
      return ErrorCode::kUnsupported;
    default:
      return ErrorCode::kUnavailable;
  }
}

std::string_view advice_for(int system_errno) noexcept {
  switch (code_of(system_errno)) {
    case ErrorCode::kInvalidArgument:
      return "the device refuses one of these values";
    case ErrorCode::kNotFound:
      return "check that the device and its network interface are still there (ibv_devices, ip link)";
    case ErrorCode::kUnreachable:
      return "check the route and the neighbour (ip route get, ip neigh)";
    case ErrorCode::kExhausted:
      return "a limit of the device or of this process is reached; close what is not needed, or raise the limit";
    case ErrorCode::kBusy:
      return "something made from it is still there; destroy that first";
    case ErrorCode::kPermission:
      return "this user may not use the device; check /dev/infiniband and the capabilities of the container";
    case ErrorCode::kUnsupported:
      return "this device or driver does not offer it";
    default:
      return {};
  }
}

Error verbs_error(std::string_view call, std::string_view what, int system_errno, std::string_view advice) {
  const std::string files = system_errno == EMFILE && advice.empty() ? files_in_words() : std::string();
  if (advice.empty()) advice = files.empty() ? advice_for(system_errno) : files;
  const char* name = strerrorname_np(system_errno);
  return Error{code_of(system_errno), system_errno,
               fmt::format("{} {}: {} ({}){}{}", call, what,
                           strerrordesc_np(system_errno) ? strerrordesc_np(system_errno) : "unknown error",
                           name != nullptr ? std::string(name) : std::to_string(system_errno),
                           advice.empty() ? "" : "; ", advice)};
}

tl::unexpected<Error> verbs_failure(std::string_view call, std::string_view what, int system_errno,
                                    std::string_view advice) {
  return tl::make_unexpected(verbs_error(call, what, system_errno, advice));
}

int errno_of(long returned) noexcept {
  if (returned >= 0) return static_cast<int>(returned);
  if (returned == -1 && errno != 0) return errno;
  return static_cast<int>(-returned);
}

std::string files_in_words() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  return files_in_words(limit.rlim_cur, limit.rlim_max);
}

std::string files_in_words(std::uint64_t soft, std::uint64_t hard) {
  if (soft >= hard) {
    return fmt::format(
        "this process may have {} open files, its hard limit: an administrator must raise that (ulimit -n, LimitNOFILE "
        "of a systemd unit), or close what is not needed",
        soft);
  }
  return fmt::format(
      "this process may have {} open files: raise that (ulimit -n, LimitNOFILE of a systemd unit; up to {}), or close "
      "what is not needed",
      soft, hard == RLIM_INFINITY ? "any number" : std::to_string(hard));
}

std::string memlock_in_words() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "unknown";
  if (limit.rlim_cur == RLIM_INFINITY) return "unlimited";
  return fmt::format("{} KiB", limit.rlim_cur / 1024);
}

}  // namespace verbena::rdma
