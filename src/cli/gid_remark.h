// What a GID is good for, in words. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "verbena/gid.h"
#include "verbena/gid_table.h"

namespace verbena::cli {

// "loopback", "link-local", "unique-local", "private" (IPv4 of RFC 1918), "multicast" or "global".
std::string_view scope_of(const Gid& gid) noexcept;

// What is known about the port and interface of a GID.
struct GidSurroundings {
  bool port_active = false;
  std::string netdev{};            // the interface's name; empty where it is unknown here
  bool netdev_up = false;          // meaningless where netdev is empty
  std::uint16_t udp_port = 4791;   // that carries its packets, on a software device
  std::string udp_port_held_by{};  // in words; empty: by nobody who is in the way
};

struct GidRemark {
  bool usable = false;
  std::string text{};  // "yes", "yes, on this link only", "no: interface eth0 is down", ...
};

GidRemark remark_on(const GidEntry& entry, const GidSurroundings& surroundings);

// That these ports have no GID, and what to do; without any, that there is no device.
std::string no_gid_in_words(const std::vector<std::string>& ports);

}  // namespace verbena::cli
