#include "device/network.h"

#include <algorithm>

namespace verbena::device {

const Interface* find_interface(const Network& network, std::string_view name) noexcept {
  const auto found = std::find_if(network.begin(), network.end(), [name](const auto& i) { return i.name == name; });
  return found == network.end() ? nullptr : &*found;
}

const Interface* find_interface(const Network& network, unsigned index) noexcept {
  const auto found = std::find_if(network.begin(), network.end(), [index](const auto& i) { return i.index == index; });
  return found == network.end() ? nullptr : &*found;
}

std::vector<const Interface*> choose_interfaces(const Network& network) {
  std::vector<const Interface*> chosen;
  const Interface* loopback = nullptr;
  for (const auto& interface : network) {
    if (interface.loopback) {
      loopback = &interface;
    } else if (interface.up && !interface.addresses.empty()) {
      chosen.push_back(&interface);
    }
  }
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const auto* a, const auto* b) { return a->default_route && !b->default_route; });
  if (chosen.empty() && loopback != nullptr) chosen.push_back(loopback);
  return chosen;
}

}  // namespace verbena::device
