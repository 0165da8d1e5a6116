#include "rdma/doctor_gather.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "rdma/doctor_finding.h"
#include "rdma/doctor_interfaces.h"
#include "rdma/doctor_process.h"
#include "rdma/doctor_rdma_netlink.h"
#include "rdma/first_route.h"
#include "rdma/kernel_hop_limit.h"
#include "verbena/rate.h"

namespace verbena::rdma {
namespace {

namespace fs = std::filesystem;

std::uint64_t rate_of(const ibv_port_attr& port) {
  return port_speed(port.active_width, port.active_speed).bits_per_second / 1'000'000;
}

PortFacts gather_port(ibv_context* context, std::uint8_t number) {
  PortFacts facts;
  facts.view.port = number;
  auto view = query_port(context, number);
  if (!view) {
    facts.error = view.error().message;
    return facts;
  }
  facts.view = std::move(*view);
  ibv_port_attr attributes{};
  if (ibv_query_port(context, number, &attributes) == 0) {
    facts.rate_mbps = rate_of(attributes);
    facts.sm_lid = attributes.sm_lid;
  }
  return facts;
}

std::uint64_t count_of(int value) {
  return value > 0 ? static_cast<std::uint64_t>(value) : 0;
}

std::uint64_t limit_of(const DeviceFacts& device, const std::string& resource) {
  if (resource == "qp") return device.max_qp;
  if (resource == "pd") return device.max_pd;
  if (resource == "cq") return device.max_cq;
  return resource == "mr" ? device.max_mr : 0;
}

void add_resources(DeviceFacts& device, const KernelRdma& kernel) {
  const auto found = kernel.resources.find(device.name);
  if (found == kernel.resources.end()) return;
  device.resources = found->second;
  for (ResourceCount& count : *device.resources) count.limit = limit_of(device, count.name);
}

void gather_devices(HostFacts& host, const KernelRdma& kernel) {
  const auto list = DeviceList::read();
  if (!list) {
    host.list_error = list.error();
    return;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto context = Context::open(ibv_get_device_name((*list)[i]));
    DeviceFacts device;
    if (context) {
      device = gather_device(context->get());
    } else {
      device.name = ibv_get_device_name((*list)[i]);
      device.kind = kind_of(*(*list)[i]);
      device.open_error = context.error();
    }
    add_resources(device, kernel);
    host.devices.push_back(std::move(device));
  }
}

void gather_char_devices(HostFacts& host) {
  std::error_code error;
  fs::directory_iterator entry("/dev/infiniband", error);
  if (error) return;
  host.char_devices = 0;
  for (const fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
    const std::string path = entry->path().string();
    if (path.find("uverbs") == std::string::npos) continue;
    ++*host.char_devices;
    if (::access(path.c_str(), R_OK | W_OK) != 0) host.unreadable_char_devices.push_back(path);
  }
}

// What rdma_cm gives a program that sets no traffic class, where the administrator has set it.
void add_default_tos(HostFacts& host) {
  for (const DeviceFacts& device : host.devices) {
    std::ifstream file(fmt::format("/sys/kernel/config/rdma_cm/{}/ports/1/default_roce_tos", device.name));
    int tos = 0;
    if (!(file >> tos)) continue;
    for (InterfaceFacts& interface : host.interfaces) {
      const bool ours = std::any_of(device.gids.begin(), device.gids.end(),
                                    [&](const GidEntry& entry) { return entry.netdev == interface.index; });
      if (ours) interface.loss.default_tos = static_cast<std::uint8_t>(tos);
    }
  }
}

// On InfiniBand a LID needs no GID of ours to be chosen by route.
bool reaches_by_lid(const PortFacts& port, const PathQuestion& question) {
  return port.view.link_layer == LinkLayer::kInfiniBand && port.view.active && question.dlid != 0;
}

// One port that reaches the peer.
struct Way {
  std::string device;
  std::uint8_t port = 0;
  std::optional<SourceChoice> source{};
};

// Nothing where the port does not reach the peer; `path` has why not, of the first that was asked.
std::optional<Way> try_port(PathFacts& path, const DeviceFacts& device, const PortFacts& port,
                            const PathQuestion& question) {
  Way way{.device = device.name, .port = port.view.port};
  if (question.destination.is_zero()) {
    if (reaches_by_lid(port, question)) return way;
    if (!path.source_error && question.dlid != 0) {
      path.source_error = Error{
          ErrorCode::kUnreachable, 0,
          fmt::format("LID {} is of an InfiniBand network, and {} port {} is Ethernet (RoCE): name the peer by GID "
                      "or IP address",
                      question.dlid, device.name, port.view.port)};
    }
    return std::nullopt;
  }
  const SourceQuery query{
      .destination = question.destination, .port = port.view.port, .netdev = question.netdev, .source = {}};
  auto choice = choose_source(device.gids, query, look_up_route);
  if (!choice) {
    if (!path.source_error) path.source_error = choice.error();
    return std::nullopt;
  }
  way.source = std::move(*choice);
  return way;
}

void take(PathFacts& path, Way way) {
  path.device = std::move(way.device);
  path.port = way.port;
  path.source = std::move(way.source);
  path.source_error.reset();
}

bool may_be_taken(const DeviceFacts& device, const PortFacts& port, const PathQuestion& question) {
  return port.view.active && (question.device.empty() || question.device == device.name) &&
         (question.port == 0 || question.port == port.view.port);
}

// Of ports that all speak another link layer than the peer the first, so that it can be told.
bool take_unlike(PathFacts& path, const HostFacts& host, const PathQuestion& question) {
  std::optional<Way> first;
  for (const DeviceFacts& device : host.devices) {
    for (const PortFacts& port : device.ports) {
      if (!may_be_taken(device, port, question)) continue;
      if (!question.link_layer || port.view.link_layer == *question.link_layer) return false;
      if (!first) first = Way{.device = device.name, .port = port.view.port};
    }
  }
  if (first) take(path, std::move(*first));
  return first.has_value();
}

// The port that the route leaves by; else the first with a way of its own.
void choose_device(PathFacts& path, const HostFacts& host, const PathQuestion& question) {
  const std::optional<Route> route = first_route(question.destination, question.netdev, look_up_route);
  std::optional<Way> second_best;
  for (const DeviceFacts& device : host.devices) {
    for (const PortFacts& port : device.ports) {
      if (!may_be_taken(device, port, question)) continue;
      if (question.link_layer && port.view.link_layer != *question.link_layer) continue;
      std::optional<Way> way = try_port(path, device, port, question);
      const bool by_address = port.view.link_layer == LinkLayer::kEthernet || !question.destination.is_ipv4_mapped();
      if (way && by_address && (!way->source || is_on_route(*way->source, route))) return take(path, std::move(*way));
      if (way && !second_best) second_best = std::move(way);
    }
  }
  if (second_best) return take(path, std::move(*second_best));
  if (take_unlike(path, host, question)) return;
  if (path.source_error) return;
  path.source_error =
      Error{ErrorCode::kNotFound, 0,
            question.device.empty() ? std::string("no device has an active port")
                                    : fmt::format("device {} is not there, or has no active port", question.device)};
}

void add_neighbours(PathFacts& path) {
  const Route& route = *path.route;
  const Gid next_hop = route.gateway.is_zero() ? path.destination : route.gateway;
  NeighbourFacts here{.state = NeighbourFacts::State::kNone, .address = next_hop, .netdev = route.netdev};
  for (const NeighbourFacts& neighbour : gather_neighbours(next_hop)) {
    if (neighbour.netdev == route.netdev) {
      here = neighbour;
    } else {
      path.neighbours_elsewhere.push_back(neighbour);
    }
  }
  path.neighbour = here;
}

}  // namespace

std::uint64_t port_rate_mbps(ibv_context* context, std::uint8_t port) {
  ibv_port_attr attributes{};
  return ibv_query_port(context, port, &attributes) == 0 ? rate_of(attributes) : 0;
}

DeviceFacts gather_device(ibv_context* context) {
  DeviceFacts device;
  device.name = ibv_get_device_name(context->device);
  device.kind = kind_of(*context->device);
  ibv_device_attr attributes{};
  if (ibv_query_device(context, &attributes) != 0) return device;
  device.max_ah = count_of(attributes.max_ah);
  device.max_qp = count_of(attributes.max_qp);
  device.max_pd = count_of(attributes.max_pd);
  device.max_cq = count_of(attributes.max_cq);
  device.max_mr = count_of(attributes.max_mr);
  device.max_cqe = count_of(attributes.max_cqe);
  device.max_qp_wr = count_of(attributes.max_qp_wr);
  for (unsigned port = 1; port <= attributes.phys_port_cnt; ++port) {
    device.ports.push_back(gather_port(context, static_cast<std::uint8_t>(port)));
  }
  auto gids = read_gid_table(context);
  if (gids) {
    device.gids = std::move(*gids);
  } else {
    device.gid_error = gids.error();
  }
  return device;
}

HostFacts gather_host() {
  HostFacts host;
  const KernelRdma kernel = ask_kernel_rdma();
  host.process = gather_process();
  host.interfaces = gather_interfaces();
  host.sees_all_processes = sees_all_processes();
  host.kernel_rdma = kernel.present;
  host.namespace_mode = kernel.mode;
  host.kernel_devices = kernel.devices;
  gather_char_devices(host);
  gather_devices(host, kernel);
  add_default_tos(host);
  host.udp_4791 = gather_port_holders(kRoceUdpPort);
  host.udp_4797 = gather_port_holders(kInfinibandUdpPort);
  return host;
}

PathFacts gather_path(const HostFacts& host, const PathQuestion& question) {
  PathFacts path{.peer = question.peer,
                 .destination = question.destination,
                 .dlid = question.dlid,
                 .hop_limit = question.hop_limit,
                 .static_rate = question.static_rate,
                 .traffic_class = question.traffic_class,
                 .qkey = question.qkey,
                 .peers = question.peers};
  choose_device(path, host, question);
  const DeviceFacts* device = find_device(host, path.device);
  const PortFacts* port = device == nullptr ? nullptr : find_port(*device, path.port);
  if (port != nullptr) path.local = {port->view.link_layer, device->kind, port->view.lid};
  const bool ethernet = port == nullptr || port->view.link_layer == LinkLayer::kEthernet;
  if (!ethernet || question.destination.is_zero() || question.destination.is_multicast()) return path;
  const std::uint32_t netdev = question.netdev != 0 || !question.destination.is_link_local() || !path.source
                                   ? question.netdev
                                   : path.source->entry.netdev;
  auto route = look_up_route(question.destination, netdev);
  if (!route) {
    path.route_error = route.error();
    return path;
  }
  path.route = *route;
  if (device != nullptr && device->kind == DeviceKind::kKernelSoftware) {
    path.kernel_hop_limit = kernel_hop_limit(question.destination, *route);
  }
  if (!route->local) add_neighbours(path);
  return path;
}

}  // namespace verbena::rdma
