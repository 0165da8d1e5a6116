#include "engine/memory_window.h"

namespace verbena::engine {
namespace {

constexpr std::uint32_t index_of(MemoryKey key) noexcept {
  return key.value() >> 8;
}

bool covers(const MemoryRegion& region, std::uint64_t address, std::uint64_t length) noexcept {
  const std::uint64_t offset = address - region.iova;  // wraps to a huge number below the region
  return offset <= region.length && length <= region.length - offset;
}

}  // namespace

MemoryFault MemoryWindow::check(const BindRequest& request, const MemoryRegion* region) const noexcept {
  if (request.domain != &domain_) return MemoryFault::kOtherDomain;
  if (request.type != type_ || index_of(request.key) != index_of(key())) return MemoryFault::kWindowState;
  if (type_ == WindowType::kType2 && (bound() || request.length == 0)) return MemoryFault::kWindowState;
  if (request.length == 0) return MemoryFault::kNone;
  if (region == nullptr) return MemoryFault::kUnknownKey;
  if (region->domain != &domain_) return MemoryFault::kOtherDomain;
  if ((request.access & ~kWindowAccess) != 0) return MemoryFault::kNoAccess;
  // Addresses of a window of type 1 are those of its region.
  if (type_ == WindowType::kType1 && (request.access & kZeroBased) != 0) return MemoryFault::kNoAccess;
  if ((region->access & kMemoryWindowBind) == 0) return MemoryFault::kNoAccess;
  if ((request.access & (kRemoteWrite | kRemoteAtomic)) != 0 && (region->access & kLocalWrite) == 0) {
    return MemoryFault::kNoAccess;
  }
  return covers(*region, request.address, request.length) ? MemoryFault::kNone : MemoryFault::kOutOfBounds;
}

MemoryFault MemoryWindow::bind(const BindRequest& request, MemoryRegion* region) noexcept {
  if (const MemoryFault fault = check(request, region); fault != MemoryFault::kNone) return fault;
  if (region_ != nullptr) --region_->bound_windows;
  region_ = request.length == 0 ? nullptr : region;
  if (region_ == nullptr) {
    write({request.key.value(), 0, 0, 0, 0, 0});
    return MemoryFault::kNone;
  }
  ++region_->bound_windows;
  // On demand: so is what is bound to it.
  const AccessFlags access = (request.access & ~(kZeroBased | kLocalWrite)) | (region->access & kOnDemand);
  write({request.key.value(), request.by.value(), access, (request.access & kZeroBased) != 0 ? 0 : request.address,
         request.length, region->address + (request.address - region->iova)});
  return MemoryFault::kNone;
}

MemoryFault MemoryWindow::invalidate(const ProtectionDomain& domain, MemoryKey key, Qpn by) noexcept {
  if (&domain != &domain_) return MemoryFault::kOtherDomain;
  if (type_ != WindowType::kType2) return MemoryFault::kWindowState;
  if (!bound() || key != this->key()) return MemoryFault::kUnknownKey;
  if (by != this->by()) return MemoryFault::kOtherQueuePair;
  unbind();
  return MemoryFault::kNone;
}

void MemoryWindow::unbind() noexcept {
  if (region_ != nullptr) --region_->bound_windows;
  region_ = nullptr;
  write({key().value(), 0, 0, 0, 0, 0});
}

MemoryFault MemoryWindow::resolve(const ProtectionDomain& domain, MemoryKey rkey, std::uint64_t address,
                                  std::uint32_t length, AccessFlags access, Qpn by, Reach reach) const noexcept {
  Binding binding;
  if (!read(binding) || binding.key != rkey.value() || binding.length == 0) return MemoryFault::kUnknownKey;
  if (&domain != &domain_) return MemoryFault::kOtherDomain;
  if (type_ == WindowType::kType2 && by.value() != binding.by) return MemoryFault::kOtherQueuePair;
  const std::uint64_t offset = address - binding.iova;
  if (offset > binding.length || length > binding.length - offset) return MemoryFault::kOutOfBounds;
  if ((binding.access & access) != access) return MemoryFault::kNoAccess;
  reach.bytes = {reinterpret_cast<std::byte*>(binding.memory + offset), length};
  reach.on_demand = (binding.access & kOnDemand) != 0;
  return MemoryFault::kNone;
}

void MemoryWindow::write(const Binding& binding) noexcept {
  const std::uint32_t before = sequence_.load(std::memory_order_relaxed);
  sequence_.store(before + 1, std::memory_order_relaxed);
  // Release: whoever reads one of the fields below as written finds the odd number, or a later one, in its second look.
  // Partner of the acquire in read().
  key_.store(binding.key, std::memory_order_release);
  by_.store(binding.by, std::memory_order_release);
  access_.store(binding.access, std::memory_order_release);
  iova_.store(binding.iova, std::memory_order_release);
  length_.store(binding.length, std::memory_order_release);
  memory_.store(binding.memory, std::memory_order_release);
  sequence_.store(before + 2, std::memory_order_release);
}

bool MemoryWindow::read(Binding& binding) const noexcept {
  const std::uint32_t before = sequence_.load(std::memory_order_acquire);
  if ((before & 1) != 0) return false;
  binding.key = key_.load(std::memory_order_acquire);
  binding.by = by_.load(std::memory_order_acquire);
  binding.access = access_.load(std::memory_order_acquire);
  binding.iova = iova_.load(std::memory_order_acquire);
  binding.length = length_.load(std::memory_order_acquire);
  binding.memory = memory_.load(std::memory_order_acquire);
  // After acquire loads of the fields: sees at least the number that was there when they were written.
  return sequence_.load(std::memory_order_relaxed) == before;
}

}  // namespace verbena::engine
