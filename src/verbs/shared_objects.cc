#include "verbs/shared_objects.h"

namespace verbena::verbs {

SharedObjects<device::ProtectionDomain>& shared_domains() noexcept {
  static auto& instance = *new SharedObjects<device::ProtectionDomain>;
  return instance;
}

SharedObjects<device::MemoryRegion>& shared_regions() noexcept {
  static auto& instance = *new SharedObjects<device::MemoryRegion>;
  return instance;
}

SharedObjects<device::DeviceMemory>& shared_memories() noexcept {
  static auto& instance = *new SharedObjects<device::DeviceMemory>;
  return instance;
}

}  // namespace verbena::verbs
