// A registered memory region. Nothing is pinned: the device lives in the process whose memory it is.
//
// Thread-safety: all calls from any thread; destruction needs that nobody else uses it.
// Ownership:     the memory stays the caller's, and must outlive the region. Keeps the context alive.
#pragma once

#include <cstdint>
#include <memory>

#include "device/protection_domain.h"
#include "engine/memory_region.h"

namespace verbena::device {

class MemoryRegion {
 public:
  // `iova`: what work requests call the first byte. Errors: EINVAL for access flags that contradict each other or are
  // unknown, for a region that wraps around and for one without a page; EFAULT for memory that is not mapped, or not
  // writable where it is to be written; EOPNOTSUPP for on-demand paging; ENOMEM at the limit.
  static Result<std::unique_ptr<MemoryRegion>> create(ProtectionDomain& domain, std::uint64_t address,
                                                      std::uint64_t length, std::uint64_t iova,
                                                      engine::AccessFlags access);
  ~MemoryRegion();
  // Out of the table: no key names it any more, and destruction cannot fail. EBUSY while a memory window is bound to
  // it.
  Status withdraw();
  MemoryRegion(const MemoryRegion&) = delete;
  MemoryRegion& operator=(const MemoryRegion&) = delete;

  Context& context() noexcept { return domain_.context(); }
  std::uint32_t key() const noexcept { return region_.key.value(); }  // lkey and rkey
  std::uint32_t handle() const noexcept { return handle_; }

 private:
  MemoryRegion(ProtectionDomain& domain, const engine::MemoryRegion& region)
      : context_(domain.context().shared_from_this()),
        domain_(domain),
        region_(region),
        handle_(context_->next_handle()) {}

  const std::shared_ptr<Context> context_;
  ProtectionDomain& domain_;
  engine::MemoryRegion region_;
  bool published_ = false;
  const std::uint32_t handle_;
};

}  // namespace verbena::device
