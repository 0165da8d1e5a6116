// A kernel whose routes and neighbours a test decides, and a directory that is told of its changes by hand.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include <fake_verbs/ah_world.h>

namespace verbena::fake {

inline constexpr MacAddress kMac{2, 0, 0, 0, 0, 1};
inline constexpr MacAddress kOtherMac{2, 0, 0, 0, 0, 2};

// A kernel whose routes and neighbours a test decides.
struct Kernel {
  std::mutex mutex;
  std::map<Gid, MacAddress> macs;        // guarded by mutex, as all
  std::map<Gid, Gid> gateways;           // destination to gateway
  std::map<Gid, Gid> sources;            // destination to the address to send from
  std::map<Gid, std::uint32_t> netdevs;  // destination to interface, where it is not the usual one
  bool has_routes = true;
  std::uint64_t look_ups = 0;

  Result<Route> route(const Gid& destination) {
    const std::lock_guard lock(mutex);
    ++look_ups;
    if (!has_routes) return failure(ErrorCode::kUnreachable, "the kernel has no route", ENETUNREACH);
    Route route = *usual_route(destination, 0);
    if (const auto at = gateways.find(destination); at != gateways.end()) route.gateway = at->second;
    if (const auto at = sources.find(destination); at != sources.end()) route.source = at->second;
    if (const auto at = netdevs.find(destination); at != netdevs.end()) route.netdev = at->second;
    return route;
  }
  std::optional<MacAddress> mac(const Gid& hop) {
    const std::lock_guard lock(mutex);
    const auto at = macs.find(hop);
    return at != macs.end() ? std::optional(at->second) : std::nullopt;
  }
  void set_mac(const Gid& hop, const MacAddress& mac) {
    const std::lock_guard lock(mutex);
    macs[hop] = mac;
  }
  void move(const Gid& destination, std::uint32_t netdev, const Gid& source) {
    const std::lock_guard lock(mutex);
    netdevs[destination] = netdev;
    sources[destination] = source;
  }
  std::uint64_t routes_asked() {
    const std::lock_guard lock(mutex);
    return look_ups;
  }
};

class Network : public AhWorld {
 protected:
  using Kind = NetworkChange::Kind;

  AhDirectoryOptions fed() {
    AhDirectoryOptions options = AhWorld::options();
    options.watch_async_events = false;
    options.routes = [this](const Gid& destination, std::uint32_t) { return kernel.route(destination); };
    options.neighbours = [this](const Gid& hop, std::uint32_t) -> Result<std::optional<MacAddress>> {
      return kernel.mac(hop);
    };
    return options;
  }

  static NetworkChange neighbour(const Gid& address, std::optional<MacAddress> mac, bool removed = false) {
    return {.kind = Kind::kNeighbour, .netdev = kNetdev, .address = address, .removed = removed, .mac = mac};
  }

  static NetworkChange route(const Gid& prefix, std::uint8_t length) {
    return {.kind = Kind::kRoute, .netdev = 0, .address = prefix, .prefix_length = length};
  }

  // Interfaces that the port has no GID on, as with each container of the host.
  static void come_and_go(AhDirectory& directory) {
    for (std::uint32_t netdev = 100; netdev < 200; ++netdev) {
      directory.on_network_change({.kind = Kind::kLink, .netdev = netdev, .mac = kMac});
      directory.on_network_change({.kind = Kind::kAddress, .netdev = netdev, .address = ipv4(99)});
      directory.on_network_change({.kind = Kind::kLink, .netdev = netdev, .removed = true});
    }
  }

  // Nothing is under way, and nothing that was under way has touched an address.
  static bool is_quiet(const AhDirectory& directory) {
    const AhStats stats = directory.stats();
    return stats.pending == 0 && stats.refreshing == 0 && stats.retired == 0;
  }

  Kernel kernel;
};

}  // namespace verbena::fake
