// Objects by the handle that a program passes from one of its parts to another, for the ibv_import_*() calls. It
// reaches as far as the device does: within the process.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "device/device_memory.h"
#include "device/memory_region.h"
#include "device/protection_domain.h"

namespace verbena::verbs {

// Thread-safety: any thread.
// Ownership:     none: an object that its owner gave up is no longer found.
template <class Object>
class SharedObjects {
 public:
  void add(const device::Context& context, std::uint32_t handle, const std::shared_ptr<Object>& object) {
    const std::lock_guard guard(mutex_);
    if (objects_.size() >= next_sweep_) sweep();
    objects_[{&context, handle}] = object;
  }
  // nullptr where there is none.
  std::shared_ptr<Object> find(const device::Context& context, std::uint32_t handle) {
    const std::lock_guard guard(mutex_);
    const auto found = objects_.find({&context, handle});
    return found == objects_.end() ? nullptr : found->second.lock();
  }

 private:
  // Requires: mutex_. Forgets those that are gone, when as many were added as had been left.
  void sweep() {
    std::erase_if(objects_, [](const auto& entry) { return entry.second.expired(); });
    next_sweep_ = std::max<std::size_t>(64, 2 * objects_.size());
  }

  std::mutex mutex_;
  std::map<std::pair<const device::Context*, std::uint32_t>, std::weak_ptr<Object>> objects_;  // guarded by mutex_
  std::size_t next_sweep_ = 64;                                                                // guarded by mutex_
};

// Kept until the process ends.
SharedObjects<device::ProtectionDomain>& shared_domains() noexcept;
SharedObjects<device::MemoryRegion>& shared_regions() noexcept;
SharedObjects<device::DeviceMemory>& shared_memories() noexcept;

}  // namespace verbena::verbs
