#include "device/locked_memory.h"

#include <atomic>
#include <cerrno>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "device/privilege.h"

namespace verbena::device {
namespace {

// Relaxed: it only counts.
std::atomic<std::uint64_t> locked_bytes{0};

std::uint64_t limit() noexcept {
  rlimit now{};
  return ::getrlimit(RLIMIT_MEMLOCK, &now) == 0 ? std::uint64_t{now.rlim_cur} : UINT64_MAX;
}

}  // namespace

Result<LockedMemory> LockedMemory::charge(std::uint64_t address, std::uint64_t length) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t pages = (address + length - 1) / page - address / page + 1;
  LockedMemory charged(pages * page);
  const std::uint64_t all = locked_bytes.fetch_add(charged.bytes_, std::memory_order_relaxed) + charged.bytes_;
  if (all <= limit() || may_lock_memory()) return charged;
  return failure(
      ErrorCode::kExhausted,
      fmt::format("registering {} bytes would lock {} bytes in this process, and RLIMIT_MEMLOCK (ulimit -l) "
                  "is {}: raise it, or give the process CAP_IPC_LOCK (said because VERBENA_QUIRKS has memlock)",
                  length, all, limit()),
      ENOMEM);
}

LockedMemory::~LockedMemory() {
  if (bytes_ != 0) locked_bytes.fetch_sub(bytes_, std::memory_order_relaxed);
}

}  // namespace verbena::device
