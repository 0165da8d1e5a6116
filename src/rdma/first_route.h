// The kernel's first answer about a destination, asked without an interface, by which the device is chosen among
// several: asked by an interface, any device that has a default route leads anywhere.
#pragma once

#include <cstdint>
#include <optional>

#include "verbena/gid.h"
#include "verbena/gid_resolver.h"
#include "verbena/route.h"

namespace verbena::rdma {

// Empty where the kernel has no route, and where its answer does not choose a device: a multicast or link-local
// destination. `netdev` != 0: the user named the interface.
std::optional<Route> first_route(const Gid& destination, std::uint32_t netdev, const RouteLookup& routes);

// `route` leaves by the interface of this source, or nothing better can be known. To an address of this host: the
// kernel would send from this very source, which is that address itself.
bool is_on_route(const SourceChoice& choice, const std::optional<Route>& route);

}  // namespace verbena::rdma
