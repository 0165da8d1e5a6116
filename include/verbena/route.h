// What the kernel's routing table says about an address.
#pragma once

#include <cstdint>
#include <functional>

#include "verbena/export.h"
#include "verbena/gid.h"
#include "verbena/result.h"

namespace verbena {

struct Route {
  std::uint32_t netdev = 0;    // interface index it leaves by
  Gid source;                  // the address the kernel would send from; zero where it does not say
  Gid gateway;                 // zero where the destination is on the link
  bool local = false;          // the destination is an address of this host
  std::uint32_t mtu = 0;       // of the route, where it has one of its own; else 0
  std::uint8_t hop_limit = 0;  // likewise
};

// Looks `destination` up; `netdev` != 0 asks for the route by that interface only.
using RouteLookup = std::function<Result<Route>(const Gid& destination, std::uint32_t netdev)>;

// Asks the kernel (rtnetlink), in the network namespace of the calling thread. By an interface there is a route only
// where the routing tables have one: by itself, or, where rules choose the table by the source, from one of the
// interface's addresses.
// Errors: kUnreachable where there is no route, with the words of the kernel.
VERBENA_API Result<Route> look_up_route(const Gid& destination, std::uint32_t netdev);

}  // namespace verbena
