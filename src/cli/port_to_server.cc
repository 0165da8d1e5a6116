#include "cli/port_to_server.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cli/active_port.h"
#include "rdma/first_route.h"
#include "verbena/device.h"
#include "verbena/gid_resolver.h"

namespace verbena::cli {
namespace {

// `link_layer`: of the server; empty where it does not say.
Result<PortCandidate> look_at(const Context& context, std::uint8_t number, const std::string& link_layer) {
  const auto port = active_port(context, number);
  if (!port) return tl::make_unexpected(port.error());
  PortCandidate candidate{.name = {.device = context.name(), .port = number},
                          .infiniband = port->link_layer == LinkLayer::kInfiniBand};
  if (!link_layer.empty() && candidate.infiniband != (link_layer == "infiniband")) {
    return failure(ErrorCode::kUnreachable,
                   fmt::format("{} is {}, and the server's port is not; name another with --device, or use another at "
                               "the server",
                               to_text(candidate.name), candidate.infiniband ? "InfiniBand" : "Ethernet (RoCE)"));
  }
  if (candidate.infiniband) return candidate;
  auto table = read_gid_table(context.get());
  if (!table) return tl::make_unexpected(table.error());
  candidate.table = std::move(*table);
  return candidate;
}

// The ports of one device; `error` is why the last of them was left out.
void add_ports(std::vector<PortCandidate>& candidates, const PortName& wanted, const std::string& link_layer,
               Error& error) {
  const auto context = Context::open(wanted.device);
  const Result<ibv_device_attr> device =
      context ? context->query_device() : Result<ibv_device_attr>(tl::make_unexpected(context.error()));
  if (!device) {
    error = device.error();
    return;
  }
  const unsigned first = wanted.port == 0 ? 1U : wanted.port;
  const unsigned last = wanted.port == 0 ? device->phys_port_cnt : wanted.port;
  for (unsigned number = first; number <= last; ++number) {  // up to 255: wider than a port
    auto candidate = look_at(*context, static_cast<std::uint8_t>(number), link_layer);
    if (candidate) {
      candidates.push_back(std::move(*candidate));
    } else {
      error = candidate.error();
    }
  }
}

}  // namespace

Result<PortName> pick_port(const std::vector<PortCandidate>& candidates, const std::vector<Gid>& server,
                           std::uint32_t netdev, const RouteLookup& routes) {
  Error error{ErrorCode::kUnreachable, 0, "the server has no GID"};
  const PortCandidate* second_best = nullptr;
  const bool routed = std::any_of(server.begin(), server.end(),
                                  [&](const Gid& gid) { return rdma::first_route(gid, 0, routes).has_value(); });
  for (const Gid& gid : server) {
    const std::uint32_t by = gid.is_link_local() ? netdev : 0;
    if (gid.is_link_local() && by == 0 && routed) continue;  // on which link nobody says, and the routes say where to
    const std::optional<Route> route = rdma::first_route(gid, by, routes);
    for (const PortCandidate& candidate : candidates) {
      if (candidate.infiniband) return candidate.name;
      const auto choice = choose_source(
          candidate.table, {.destination = gid, .port = candidate.name.port, .netdev = by, .source = {}}, routes);
      const bool decided = route ? choice && rdma::is_on_route(*choice, route) : choice && by != 0;
      if (decided) return candidate.name;
      if (choice && second_best == nullptr) second_best = &candidate;
      if (!choice && gid == server.front()) error = choice.error();
    }
  }
  if (second_best != nullptr) return second_best->name;
  return tl::make_unexpected(std::move(error));
}

Result<PortName> choose_port_to(const SessionHello& server, const PortName& wanted, std::uint32_t netdev) {
  const auto list = DeviceList::read();
  if (!list) return tl::make_unexpected(list.error());
  Error error{ErrorCode::kNotFound, 0, "there is no verbs device here"};
  std::vector<PortCandidate> candidates;
  bool found = false;
  for (const std::string& name : list->names()) {
    if (!wanted.names_device(name)) continue;
    found = true;
    add_ports(candidates, {.device = name, .port = wanted.port}, server.link_layer, error);
  }
  if (!found && !wanted.device.empty()) {
    const auto context = Context::open(wanted.device);  // says which there are
    if (!context) error = context.error();
  }
  if (candidates.empty()) return tl::make_unexpected(std::move(error));
  return pick_port(candidates, server.gids, netdev, look_up_route);
}

}  // namespace verbena::cli
