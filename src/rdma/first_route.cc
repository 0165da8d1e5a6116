#include "rdma/first_route.h"

namespace verbena::rdma {

std::optional<Route> first_route(const Gid& destination, std::uint32_t netdev, const RouteLookup& routes) {
  if (destination.is_zero() || destination.is_multicast() || destination.is_link_local()) return std::nullopt;
  const Result<Route> route = routes(destination, netdev);
  if (!route) return std::nullopt;
  return *route;
}

bool is_on_route(const SourceChoice& choice, const std::optional<Route>& route) {
  if (!route) return true;
  if (route->local) return route->source.is_zero() || choice.entry.gid == route->source;
  const std::uint32_t netdev = choice.entry.netdev;
  return netdev == 0 || netdev == route->netdev;
}

}  // namespace verbena::rdma
