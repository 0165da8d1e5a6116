#include "verbs/devices.h"

#include <array>
#include <cstring>
#include <new>
#include <string_view>

namespace verbena::verbs {
namespace {

// Stands where a provider's operations would: nobody's, and empty.
constexpr std::array<std::byte, 512> kNoProvider{};

void copy_text(std::span<char> to, std::string_view text) noexcept {
  const std::size_t length = std::min(text.size(), to.size() - 1);
  std::memcpy(to.data(), text.data(), length);
  to[length] = '\0';
}

void fill(VerbsDevice& record, const device::Device& identity) {
  record.device.node_type = IBV_NODE_CA;
  record.device.transport_type = IBV_TRANSPORT_IB;
  copy_text(record.device.name, identity.name());
  copy_text(record.device.dev_name, identity.name());
  copy_text(record.device.dev_path, "/sys/class/infiniband_verbs/" + identity.name());
  copy_text(record.device.ibdev_path, "/sys/class/infiniband/" + identity.name());
  record.ops = kNoProvider.data();
  record.sysfs = &record;
  record.identity = &identity;
}

std::span<VerbsDevice> make_devices() noexcept {
  try {
    const auto identities = device::device_list();
    if (identities.empty()) return {};
    auto* const records = new VerbsDevice[identities.size()];
    for (std::size_t i = 0; i < identities.size(); ++i) fill(records[i], *identities[i]);
    our_range.begin.store(reinterpret_cast<std::uintptr_t>(records), std::memory_order_relaxed);
    our_range.size.store(identities.size() * sizeof(VerbsDevice), std::memory_order_relaxed);
    return {records, identities.size()};
  } catch (const std::bad_alloc&) {
    return {};
  }
}

}  // namespace

constinit DeviceRange our_range;

std::span<VerbsDevice> our_devices() noexcept {
  static const std::span<VerbsDevice> devices = make_devices();
  return devices;
}

}  // namespace verbena::verbs
