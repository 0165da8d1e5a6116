#include "ucm/station.h"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <netinet/in.h>

#include "device/log.h"
#include "device/rcu.h"
#include "transport/fd.h"

namespace verbena::ucm {
namespace {

// The first port of Ethernet whose GIDs `fits` likes, and that GID.
template <class Fits>
Result<std::optional<Station>> search(device::Runtime& runtime, Fits fits) {
  for (const auto& device : device::device_list()) {
    if (!has_ethernet(*device)) continue;
    const auto ports = runtime.open_ports(*device);
    if (!ports) return tl::make_unexpected(ports.error());
    const device::RcuReadSection section;
    for (device::Port* const port : *ports) {
      if (port->is_infiniband()) continue;
      for (const auto& entry : port->snapshot().gids.entries()) {
        if (!entry.gid.is_zero() && fits(entry.gid)) return std::optional(Station{device.get(), port, entry.gid});
      }
    }
  }
  return std::optional<Station>();
}

Error no_device(const Gid& address) {
  return {ErrorCode::kNotFound, ENODEV,
          fmt::format("no device has the address {}: `verbena gids` lists those that have one, VERBENA_DEVICES says "
                      "which interfaces become devices",
                      verbena::to_string(address))};
}

}  // namespace

bool has_ethernet(const device::Device& device) noexcept {
  const auto ports = device.ports();
  return std::any_of(ports.begin(), ports.end(), [](const auto& port) { return !port.infiniband; });
}

Result<Station> find_station(device::Runtime& runtime, const Gid& address) {
  const auto found = search(runtime, [&](const Gid& gid) { return gid == address; });
  if (!found) return tl::make_unexpected(found.error());
  if (!*found) return tl::make_unexpected(no_device(address));
  return **found;
}

Result<Station> find_station_or_any(device::Runtime& runtime, const Gid& address) {
  auto found = find_station(runtime, address);
  if (found || !address.is_loopback()) return found;
  const auto any = search(runtime, [&](const Gid& gid) {
    return gid.is_ipv4_mapped() == address.is_ipv4_mapped() && !gid.is_link_local();
  });
  if (any && *any) return **any;
  return found;
}

Status open_all_ports(device::Runtime& runtime) {
  const auto opened = search(runtime, [](const Gid&) { return false; });
  if (!opened) return tl::make_unexpected(opened.error());
  return {};
}

Result<SocketAddress> source_address(const SocketAddress& destination, const std::optional<SocketAddress>& source) {
  const auto failed = [&](const char* what) -> tl::unexpected<Error> {
    Error error = device::system_error(fmt::format("{} {}", what, to_string(destination)));
    error.code = ErrorCode::kUnreachable;
    return tl::make_unexpected(error);
  };
  const transport::Fd socket(::socket(destination.ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return failed("a socket to look up the route to");
  sockaddr_storage storage{};
  if (source && !source->is_any()) {
    SocketAddress from = *source;
    from.port = 0;
    const auto size = static_cast<socklen_t>(put_address(from, storage));
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&storage), size) != 0) return failed("source for");
  }
  SocketAddress to = destination;
  if (to.port == 0) to.port = 1;
  auto size = static_cast<socklen_t>(put_address(to, storage));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&storage), size) != 0) return failed("no route to");
  size = sizeof storage;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&storage), &size) != 0) return failed("no source for");
  auto found = parse_address(&storage, size);
  if (!found) return failure(ErrorCode::kInternal, "the kernel named a source of another family", EAFNOSUPPORT);
  found->port = source ? source->port : 0;
  return *found;
}

}  // namespace verbena::ucm
