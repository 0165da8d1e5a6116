#include "device/memory_region.h"

#include <cerrno>

#include <fmt/format.h>

#include "device/mapped_memory.h"
#include "device/null_memory.h"

namespace verbena::device {
namespace {

// What pinning the pages would find. The memory must stay as it is for as long as the region: nothing is pinned here.
Status check_memory(const engine::MemoryRegion& region) {
  if ((region.access & engine::kOnDemand) != 0 && region.length != 0) return {};
  const bool writable = (region.access & (engine::kLocalWrite | engine::kRemoteWrite | engine::kRemoteAtomic)) != 0;
  const int error = check_mapped(region.address, region.length, writable);
  if (error == 0) return {};
  return failure(ErrorCode::kInvalidArgument,
                 fmt::format("memory from {:#x}, {} bytes: {}", region.address, region.length,
                             error == EINVAL ? "there is not one page of it"
                             : writable      ? "part of it is not mapped, or is not writable"
                                             : "part of it is not mapped, or is not readable"),
                 error);
}

}  // namespace

Result<std::unique_ptr<MemoryRegion>> MemoryRegion::create(ProtectionDomain& domain, std::uint64_t address,
                                                           std::uint64_t length, std::uint64_t iova,
                                                           engine::AccessFlags access, MemoryRegion* instead_of) {
  engine::MemoryRegion region;
  region.domain = &domain.engine();
  region.address = address;
  region.length = length;
  region.iova = (access & engine::kZeroBased) != 0 ? 0 : iova;
  region.access = access;
  if (auto checked = engine::check_region(region); !checked) return tl::make_unexpected(checked.error());
  if (auto checked = check_memory(region); !checked) return tl::make_unexpected(checked.error());
  const bool counts = domain.context().quirks().has(Quirk::kMemlock) && (access & engine::kOnDemand) == 0;
  auto locked = counts ? LockedMemory::charge(address, length) : LockedMemory();
  if (!locked) return tl::make_unexpected(locked.error());
  auto made = publish(domain, region, instead_of);
  if (made) (*made)->locked_ = std::move(*locked);
  return made;
}

Result<std::unique_ptr<MemoryRegion>> MemoryRegion::create_null(ProtectionDomain& domain) {
  const auto memory = null_memory();
  if (!memory) return tl::make_unexpected(memory.error());
  engine::MemoryRegion region;
  region.domain = &domain.engine();
  region.address = memory->zeros;
  region.sink = memory->sink;
  region.length = UINT64_MAX;
  region.access = engine::kNull | engine::kLocalWrite;
  return publish(domain, region);
}

Result<std::unique_ptr<MemoryRegion>> MemoryRegion::create_in(ProtectionDomain& domain,
                                                              std::shared_ptr<DeviceMemory> memory,
                                                              std::uint64_t offset, std::uint64_t length,
                                                              engine::AccessFlags access) {
  constexpr engine::AccessFlags kPossible = engine::kKnownAccess & ~(engine::kOnDemand | engine::kHugePages);
  if (!memory->covers(offset, length)) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("{} bytes from byte {} of device memory that has {}", length, offset, memory->length()),
                   EINVAL);
  }
  if ((access & engine::kZeroBased) == 0 || (access & ~kPossible) != 0) {
    return failure(ErrorCode::kInvalidArgument,
                   "a region of device memory needs IBV_ACCESS_ZERO_BASED and is neither on demand nor of huge pages",
                   EINVAL);
  }
  engine::MemoryRegion region;
  region.domain = &domain.engine();
  region.address = memory->address() + offset;
  region.length = length;
  region.access = access;
  if (auto checked = engine::check_region(region); !checked) return tl::make_unexpected(checked.error());
  auto made = publish(domain, region);
  if (made) (*made)->memory_ = std::move(memory);
  return made;
}

Result<std::unique_ptr<MemoryRegion>> MemoryRegion::publish(ProtectionDomain& domain,
                                                            const engine::MemoryRegion& region,
                                                            MemoryRegion* instead_of) {
  Context& context = domain.context();
  if (auto entered = context.enter(ObjectKind::kMemoryRegion); !entered) return tl::make_unexpected(entered.error());
  std::unique_ptr<MemoryRegion> made(new MemoryRegion(domain, region));
  if (auto in_table = made->enter_table(instead_of); !in_table) return tl::make_unexpected(in_table.error());
  made->published_ = true;
  domain.engine().enter(engine::Resident::kMemoryRegion);
  return made;
}

Status MemoryRegion::enter_table(MemoryRegion* instead_of) {
  if (instead_of == nullptr) {
    auto key = context_->add_region(region_);
    return key ? Status{} : tl::make_unexpected(key.error());
  }
  if (auto replaced = context_->replace_region(instead_of->region_, region_); !replaced) return replaced;
  instead_of->published_ = false;
  instead_of->domain_.engine().leave(engine::Resident::kMemoryRegion);
  return {};
}

MemoryRegion::~MemoryRegion() {
  context_->leave(ObjectKind::kMemoryRegion);
  [[maybe_unused]] const Status withdrawn = withdraw();
}

Status MemoryRegion::withdraw() {
  if (!published_) return {};
  if (auto removed = context_->remove_region(region_); !removed) return removed;
  published_ = false;
  domain_.engine().leave(engine::Resident::kMemoryRegion);
  return {};
}

}  // namespace verbena::device
