// The list of devices: ours first, so that a program that takes the first one gets one of ours, then the real ones.
#include <cerrno>
#include <cstdlib>

#include <endian.h>

#include "verbs/devices.h"
#include "verbs/export.h"
#include "verbs/real.h"

namespace verbena::verbs {
namespace {

constinit Real<ibv_device**(int*)> real_get_device_list{"ibv_get_device_list", "IBVERBS_1.1"};
constinit Real<void(ibv_device**)> real_free_device_list{"ibv_free_device_list", "IBVERBS_1.1"};
constinit Real<const char*(ibv_device*)> real_get_device_name{"ibv_get_device_name", "IBVERBS_1.1"};
constinit Real<__be64(ibv_device*)> real_get_device_guid{"ibv_get_device_guid", "IBVERBS_1.1"};
constinit Real<int(ibv_device*)> real_get_device_index{"ibv_get_device_index", "IBVERBS_1.9"};

// One allocation: the real list first, then what the program gets.
struct List {
  ibv_device** real;
  ibv_device* devices[1];  // as many as there are, and a null
};
static_assert(offsetof(List, devices) == sizeof(ibv_device**));

List* list_of(ibv_device** devices) noexcept {
  return reinterpret_cast<List*>(reinterpret_cast<std::byte*>(devices) - offsetof(List, devices));
}

List* make_list(std::span<VerbsDevice> ours, ibv_device** real, std::size_t real_count) noexcept {
  auto* const list =
      static_cast<List*>(std::calloc(1, sizeof(List) + (ours.size() + real_count) * sizeof(ibv_device*)));
  if (list == nullptr) return nullptr;
  list->real = real;
  std::size_t count = 0;
  for (VerbsDevice& record : ours) list->devices[count++] = &record.device;
  for (std::size_t i = 0; i < real_count; ++i) list->devices[count++] = real[i];
  return list;
}

}  // namespace

VERBENA_EXPORT ibv_device** ibv_get_device_list(int* count) {
  const std::span<VerbsDevice> ours = our_devices();
  int real_count = 0;
  ibv_device** const real = real_get_device_list.call_or(nullptr, &real_count);
  if (count != nullptr) *count = 0;
  // A host without RDMA devices answers with an error; with devices of ours that is no error.
  if (real == nullptr && ours.empty()) return nullptr;
  List* const list = make_list(ours, real, real == nullptr ? 0 : static_cast<std::size_t>(real_count));
  if (list == nullptr) {
    if (real != nullptr) real_free_device_list.call(real);
    errno = ENOMEM;
    return nullptr;
  }
  if (count != nullptr) *count = static_cast<int>(ours.size()) + (real == nullptr ? 0 : real_count);
  return list->devices;
}

VERBENA_EXPORT void ibv_free_device_list(ibv_device** devices) {
  if (devices == nullptr) return;
  List* const list = list_of(devices);
  if (list->real != nullptr) real_free_device_list.call(list->real);
  std::free(list);
}

VERBENA_EXPORT const char* ibv_get_device_name(ibv_device* device) {
  return is_ours(device) ? device->name : real_get_device_name.call_or(nullptr, device);
}

VERBENA_EXPORT __be64 ibv_get_device_guid(ibv_device* device) {
  if (!is_ours(device)) return real_get_device_guid.call_or(0, device);
  return htobe64(reinterpret_cast<VerbsDevice*>(device)->identity->guid());
}

// The index is the kernel's; it knows nothing of our devices, which the interface answers with -1.
VERBENA_EXPORT int ibv_get_device_index(ibv_device* device) {
  return is_ours(device) ? -1 : real_get_device_index.call_or(-1, device);
}

}  // namespace verbena::verbs
