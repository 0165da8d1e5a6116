#include "device/memory_region.h"

namespace verbena::device {

Result<std::unique_ptr<MemoryRegion>> MemoryRegion::create(ProtectionDomain& domain, std::uint64_t address,
                                                           std::uint64_t length, std::uint64_t iova,
                                                           engine::AccessFlags access) {
  engine::MemoryRegion region;
  region.domain = &domain.engine();
  region.address = address;
  region.length = length;
  region.iova = (access & engine::kZeroBased) != 0 ? 0 : iova;
  region.access = access;
  if (auto checked = engine::check_region(region); !checked) return tl::make_unexpected(checked.error());
  Context& context = domain.context();
  if (auto entered = context.enter(ObjectKind::kMemoryRegion); !entered) return tl::make_unexpected(entered.error());
  std::unique_ptr<MemoryRegion> made(new MemoryRegion(domain, region));
  if (auto key = made->context_->add_region(made->region_); !key) return tl::make_unexpected(key.error());
  made->published_ = true;
  domain.engine().enter(engine::Resident::kMemoryRegion);
  return made;
}

MemoryRegion::~MemoryRegion() {
  context_->leave(ObjectKind::kMemoryRegion);
  if (!published_) return;
  context_->remove_region(region_.key);
  domain_.engine().leave(engine::Resident::kMemoryRegion);
}

}  // namespace verbena::device
