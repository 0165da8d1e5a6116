// Our devices as programs hold them, and the test whether something is ours.
//
// One array for all, made at the first ibv_get_device_list() and kept until the process ends, so that an ibv_device is
// ours exactly if it lies in it. Whatever hangs on a context is ours if the context's device is.
//
// Thread-safety: any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "device/device.h"
#include "verbs/verbs_api.h"

namespace verbena::verbs {

// Begins as the record that the real library and its providers keep: mlx5dv_is_supported() and its like look at `ops`
// behind any ibv_device and compare it with their own.
struct VerbsDevice {
  ibv_device device{};
  const void* ops = nullptr;
  std::atomic<int> reference_count{1};
  void* list[2]{};
  VerbsDevice* sysfs = nullptr;  // to itself: what ibv_read_ibdev_sysfs_file() is handed
  std::uint64_t core_support = 0;

  const device::Device* identity = nullptr;
};

std::span<VerbsDevice> our_devices() noexcept;

// Where the array lies; empty until it is made. Written before the first pointer into it is handed out, and never
// again: whoever holds such a pointer sees it.
struct DeviceRange {
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::size_t> size{0};
};
extern constinit DeviceRange our_range;

inline bool in_our_range(const void* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer) - our_range.begin.load(std::memory_order_relaxed) <
         our_range.size.load(std::memory_order_relaxed);
}
inline bool is_ours(const ibv_device* device) noexcept {
  return in_our_range(device);
}
inline bool is_ours(const ibv_context* context) noexcept {
  return in_our_range(context->device);
}
// For every kind of object that names its context.
template <class Object>
bool is_ours(const Object* object) noexcept {
  return in_our_range(object->context->device);
}

}  // namespace verbena::verbs
