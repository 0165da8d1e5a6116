// A registered memory region. Nothing is pinned: the device lives in the process whose memory it is. Memory on demand
// is looked at only when it is used (demand_paging.h).
//
// Thread-safety: all calls from any thread; destruction needs that nobody else uses it.
// Ownership:     the memory stays the caller's, and must outlive the region. Keeps the context alive.
#pragma once

#include <cstdint>
#include <memory>

#include "device/device_memory.h"
#include "device/locked_memory.h"
#include "device/protection_domain.h"
#include "engine/memory_region.h"

namespace verbena::device {

class MemoryRegion {
 public:
  // `iova`: what work requests call the first byte. `instead_of`: takes the place and the key of that region, which is
  // then withdrawn; where that fails it stays as it was (EBUSY while a memory window is bound to it). Errors: EINVAL
  // for access flags that contradict each other or are unknown, for a region that wraps around and for one without a
  // page; EFAULT for memory that is not mapped, or not writable where it is to be written, unless it is on demand;
  // ENOMEM at the limit, and with the quirk `memlock` at that of locked memory. All that the process has or will have:
  // on demand, from 0, UINT64_MAX bytes.
  static Result<std::unique_ptr<MemoryRegion>> create(ProtectionDomain& domain, std::uint64_t address,
                                                      std::uint64_t length, std::uint64_t iova,
                                                      engine::AccessFlags access, MemoryRegion* instead_of = nullptr);
  // Reads zeros, throws away what is written, whatever the address; only for this side (no remote right). ENOMEM at
  // the limit.
  static Result<std::unique_ptr<MemoryRegion>> create_null(ProtectionDomain& domain);
  // Of device memory; requests count from its first byte. EINVAL beyond its end, or without kZeroBased.
  static Result<std::unique_ptr<MemoryRegion>> create_in(ProtectionDomain& domain, std::shared_ptr<DeviceMemory> memory,
                                                         std::uint64_t offset, std::uint64_t length,
                                                         engine::AccessFlags access);
  ~MemoryRegion();
  // Out of the table: no key names it any more, and destruction cannot fail. EBUSY while a memory window is bound to
  // it.
  Status withdraw();
  MemoryRegion(const MemoryRegion&) = delete;
  MemoryRegion& operator=(const MemoryRegion&) = delete;

  Context& context() noexcept { return domain_.context(); }
  std::uint32_t key() const noexcept { return region_.key.value(); }  // lkey and rkey
  // Whether it is of the program's memory, so that another piece of that can take its place.
  bool is_plain() const noexcept { return (region_.access & engine::kNull) == 0 && memory_ == nullptr; }
  std::uint32_t handle() const noexcept { return handle_; }
  std::uint64_t length() const noexcept { return region_.length; }
  const ProtectionDomain& domain() const noexcept { return domain_; }

 private:
  static Result<std::unique_ptr<MemoryRegion>> publish(ProtectionDomain& domain, const engine::MemoryRegion& region,
                                                       MemoryRegion* instead_of = nullptr);
  Status enter_table(MemoryRegion* instead_of);
  MemoryRegion(ProtectionDomain& domain, const engine::MemoryRegion& region)
      : context_(domain.context().shared_from_this()),
        domain_(domain),
        region_(region),
        handle_(context_->next_handle()) {}

  const std::shared_ptr<Context> context_;
  ProtectionDomain& domain_;
  LockedMemory locked_;                   // as counted with the quirk `memlock`
  std::shared_ptr<DeviceMemory> memory_;  // that it is of; nullptr: the process' own
  engine::MemoryRegion region_;
  bool published_ = false;
  const std::uint32_t handle_;
};

}  // namespace verbena::device
