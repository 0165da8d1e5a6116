#include "device/device_memory.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

namespace verbena::device {
namespace {

constexpr std::uint32_t kMostLogAlignment = 12;
constexpr std::size_t kLine = 64;
constexpr std::uint64_t kUnit = 4;

}  // namespace

void DeviceMemory::Free::operator()(std::byte* bytes) const noexcept {
  std::free(bytes);
}

Result<std::shared_ptr<DeviceMemory>> DeviceMemory::create(Context& context, std::uint64_t length,
                                                           std::uint32_t log_alignment) {
  if (length == 0 || log_alignment > kMostLogAlignment) {
    return failure(
        ErrorCode::kInvalidArgument,
        fmt::format("device memory of {} bytes, aligned to 2^{}: at least 1 byte and at most 2^{} is possible", length,
                    log_alignment, kMostLogAlignment),
        EINVAL);
  }
  if (auto entered = context.enter(ObjectKind::kDeviceMemory); !entered) return tl::make_unexpected(entered.error());
  if (!context.take_device_memory(length)) {
    context.leave(ObjectKind::kDeviceMemory);
    return failure(ErrorCode::kExhausted,
                   fmt::format("{}: {} bytes of device memory are not left of {} (max_dm_size)",
                               context.device().name(), length, context.limits().max_dm_size),
                   ENOMEM);
  }
  const std::size_t alignment = std::max(kLine, std::size_t{1} << log_alignment);
  const std::size_t whole = (length + alignment - 1) / alignment * alignment;
  auto* const bytes = static_cast<std::byte*>(std::aligned_alloc(alignment, whole));
  if (bytes == nullptr) {
    context.give_device_memory(length);
    context.leave(ObjectKind::kDeviceMemory);
    return failure(ErrorCode::kExhausted, fmt::format("no memory for {} bytes of device memory", length), ENOMEM);
  }
  std::memset(bytes, 0, whole);
  return std::shared_ptr<DeviceMemory>(new DeviceMemory(context, bytes, length));
}

DeviceMemory::~DeviceMemory() {
  context_->give_device_memory(length_);
  context_->leave(ObjectKind::kDeviceMemory);
}

int DeviceMemory::check(std::uint64_t offset, std::uint64_t length) const noexcept {
  if (!covers(offset, length)) return EFAULT;
  return (offset | length) % kUnit == 0 ? 0 : EINVAL;
}

int DeviceMemory::copy_in(std::uint64_t offset, const void* from, std::size_t length) noexcept {
  if (const int error = check(offset, length)) return error;
  std::memcpy(bytes_.get() + offset, from, length);
  return 0;
}

int DeviceMemory::copy_out(void* to, std::uint64_t offset, std::size_t length) const noexcept {
  if (const int error = check(offset, length)) return error;
  std::memcpy(to, bytes_.get() + offset, length);
  return 0;
}

}  // namespace verbena::device
