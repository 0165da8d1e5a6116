#include "cli/file_size_limit.h"

#include <cerrno>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <sys/resource.h>

#include "host/counter_page.h"

namespace verbena::cli {

std::uint64_t file_size_limit() {
  rlimit limit{};
  const bool limited = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? limit.rlim_cur : std::numeric_limits<std::uint64_t>::max();
}

std::string file_size_shortage(std::uint64_t limit) {
  if (limit >= host::kCounterPageBytes) return {};
  return fmt::format(
      "{}: the software RNIC shares memory of {} bytes with other processes, and this process may have "
      "files of {} bytes and no more; raise that first (ulimit -f unlimited)",
      ::strerrordesc_np(EFBIG), host::kCounterPageBytes, limit);
}

}  // namespace verbena::cli
