// The network interfaces of this network namespace and their addresses, as values: what rtnetlink says.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "verbena/gid.h"

namespace verbena::device {

struct InterfaceAddress {
  Gid gid;
  bool usable = true;  // not tentative, not failed duplicate detection

  friend bool operator==(const InterfaceAddress&, const InterfaceAddress&) = default;
};

struct Interface {
  unsigned index = 0;
  std::string name;
  std::array<std::uint8_t, 6> mac{};
  std::uint32_t mtu = 0;  // bytes
  bool up = false;        // administratively up and with a carrier
  bool loopback = false;
  bool default_route = false;
  std::vector<InterfaceAddress> addresses;  // in the order in which the kernel lists them

  friend bool operator==(const Interface&, const Interface&) = default;
};

using Network = std::vector<Interface>;

const Interface* find_interface(const Network& network, std::string_view name) noexcept;
const Interface* find_interface(const Network& network, unsigned index) noexcept;

// Which interfaces become devices where nobody says: each that is up, is not loopback and has an address, that of the
// default route first; `lo` where there is none.
std::vector<const Interface*> choose_interfaces(const Network& network);

}  // namespace verbena::device
