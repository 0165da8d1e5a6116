// The list of devices: ours first, so that a program that takes the first one gets one of ours, then the real ones.
#include <cerrno>
#include <cstdlib>
#include <map>
#include <mutex>
#include <span>

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

// The list is one plain allocation, since programs (qperf) hand it to free(). The real list that a part of it came from
// is kept here until then, or until another list has the same address.
class RealLists {
 public:
  void keep(ibv_device** list, ibv_device** real) {
    give_back(list);
    const std::lock_guard guard(mutex_);
    if (real != nullptr) lists_[list] = real;
  }
  void give_back(ibv_device** list) {
    ibv_device** real = nullptr;
    {
      const std::lock_guard guard(mutex_);
      const auto found = lists_.find(list);
      if (found == lists_.end()) return;
      real = found->second;
      lists_.erase(found);
    }
    real_free_device_list.call(real);
  }

 private:
  std::mutex mutex_;
  std::map<ibv_device**, ibv_device**> lists_;  // guarded by mutex_
};

RealLists& real_lists() {
  static auto& lists = *new RealLists;  // programs free their lists at any time before they end
  return lists;
}

ibv_device** make_list(std::span<VerbsDevice> ours, ibv_device** real, std::size_t real_count) noexcept {
  ibv_device** const list = static_cast<ibv_device**>(std::calloc(ours.size() + real_count + 1, sizeof list[0]));
  if (list == nullptr) return nullptr;
  std::size_t count = 0;
  for (VerbsDevice& record : ours) list[count++] = &record.device;
  for (std::size_t i = 0; i < real_count; ++i) list[count++] = real[i];
  real_lists().keep(list, real);
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
  ibv_device** const list = make_list(ours, real, real == nullptr ? 0 : static_cast<std::size_t>(real_count));
  if (list == nullptr) {
    if (real != nullptr) real_free_device_list.call(real);
    errno = ENOMEM;
    return nullptr;
  }
  if (count != nullptr) *count = static_cast<int>(ours.size()) + (real == nullptr ? 0 : real_count);
  return list;
}

VERBENA_EXPORT void ibv_free_device_list(ibv_device** devices) {
  if (devices == nullptr) return;
  real_lists().give_back(devices);
  std::free(devices);
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
