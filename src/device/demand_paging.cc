#include "device/demand_paging.h"

#include <cerrno>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/mapped_memory.h"
#include "device/rcu.h"

namespace verbena::device {
namespace {

// Of the kernel's ABI; the C library of Debian 12 has them, older headers do not.
constexpr int kPopulateRead = 22;
constexpr int kPopulateWrite = 23;

class DemandPager final : public engine::Pager {
 public:
  bool page_in(std::uint64_t address, std::uint64_t length, bool write) noexcept override {
    const std::uint64_t begin = address / page_ * page_;
    const std::uint64_t span = address - begin + length;
    const std::uint64_t whole = (span + page_ - 1) / page_ * page_;
    if (whole < length || begin + whole < begin) return false;
    const int saved = errno;
    const bool populated =
        ::madvise(reinterpret_cast<void*>(begin), whole, write ? kPopulateWrite : kPopulateRead) == 0;
    // EINVAL: a kernel before 5.14, memory of a device, or the wrong rights.
    const bool there = populated || (errno == EINVAL && mapped(address, length, write));
    errno = saved;
    return there;
  }

 private:
  static bool mapped(std::uint64_t address, std::uint64_t length, bool write) noexcept {
    try {
      return check_mapped(address, length, write) == 0;
    } catch (...) {
      return false;
    }
  }

  const std::uint64_t page_ = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
};

struct Piece {
  std::uint64_t address;
  std::uint64_t length;
};

// Where the piece lies; the region may go as soon as this has returned.
Status find(ProtectionDomain& domain, Prefetch how, const engine::Sge& sge, Piece& piece) {
  const auto refuse = [&sge](const char* why, int error) {
    return failure(
        ErrorCode::kInvalidArgument,
        fmt::format("advice for {} bytes from {:#x} under key {:#x}: {}", sge.length, sge.address, sge.lkey, why),
        error);
  };
  const RcuReadSection section;
  const engine::MemoryRegion* const region = domain.context().memory().find(MemoryKey(sge.lkey));
  if (region == nullptr) return refuse("no memory region has this key", ENOENT);
  if (region->domain != &domain.engine()) return refuse("the region belongs to another protection domain", EPERM);
  if ((region->access & engine::kOnDemand) == 0) return refuse("the region is not on demand", EINVAL);
  if (how == Prefetch::kWrite && (region->access & engine::kLocalWrite) == 0) {
    return refuse("the region is not registered as writable", EPERM);
  }
  const std::uint64_t offset = sge.address - region->iova;
  if (offset > region->length || sge.length > region->length - offset) return refuse("outside of the region", EFAULT);
  piece = {region->address + offset, sge.length};
  return {};
}

}  // namespace

engine::Pager& demand_pager() noexcept {
  static DemandPager pager;
  return pager;
}

Status prefetch(ProtectionDomain& domain, Prefetch how, std::span<const engine::Sge> pieces) {
  for (const engine::Sge& sge : pieces) {
    Piece piece{};
    if (auto found = find(domain, how, sge, piece); !found) return found;
    if (how == Prefetch::kPresentOnly || piece.length == 0) continue;
    if (!demand_pager().page_in(piece.address, piece.length, how == Prefetch::kWrite)) {
      return failure(ErrorCode::kInvalidArgument,
                     fmt::format("advice for {} bytes from {:#x}: part of it is not mapped, or not with these rights",
                                 piece.length, piece.address),
                     EFAULT);
    }
  }
  return {};
}

}  // namespace verbena::device
