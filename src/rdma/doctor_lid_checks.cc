// What can be said about link layers and LIDs on the way to a peer.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "rdma/doctor_finding.h"
#include "rdma/doctor_path_checks.h"

namespace verbena::rdma {
namespace {

constexpr std::uint16_t kLastUnicastLid = 0xbfff;

const PortFacts* local_port(const HostFacts& host, const PathFacts& path) {
  const DeviceFacts* device = find_device(host, path.device);
  return device == nullptr ? nullptr : find_port(*device, path.port);
}

bool is_infiniband(const HostFacts& host, const PathFacts& path) {
  const PortFacts* port = local_port(host, path);
  return port != nullptr && port->view.link_layer == LinkLayer::kInfiniBand;
}

bool far_has(const FarPort& far, const Gid& gid) {
  return std::find(far.gids.begin(), far.gids.end(), gid) != far.gids.end();
}

// The peer's port has this port's LID, and none of its GIDs: it is another port.
bool is_own_lid_of_another(const HostFacts& host, const PathFacts& path, const PortFacts& port) {
  if (!path.far || path.far->lid != path.dlid || port.view.lid != path.dlid || path.far->gids.empty()) return false;
  const DeviceFacts* device = find_device(host, path.device);
  return std::none_of(device->gids.begin(), device->gids.end(),
                      [&](const GidEntry& entry) { return entry.port == path.port && far_has(*path.far, entry.gid); });
}

const char* link_layer_word(LinkLayer link_layer) {
  return link_layer == LinkLayer::kInfiniBand ? "InfiniBand" : "Ethernet (RoCE)";
}

Finding wrong_lid(const PathFacts& path, std::string evidence, Advice advice) {
  return finding(Severity::kFailure, "lid", path.peer, std::move(evidence), std::move(advice));
}

}  // namespace

std::optional<Finding> check_link_layers(const PathFacts& path) {
  if (!path.local || !path.far || !path.far->link_layer || path.local->link_layer == *path.far->link_layer) {
    return std::nullopt;
  }
  return finding(
      Severity::kFailure, "peer_link_layer", path.peer,
      fmt::format("{} port {} is {}, and the peer's port {} is {}", path.device, path.port,
                  link_layer_word(path.local->link_layer), path.far->device, link_layer_word(*path.far->link_layer)),
      {"the two are different networks: nothing goes from the one to the other",
       "use ports of one kind: choose one at either end by --device NAME/PORT; of the software RNIC declare "
       "link_layer=infiniband in VERBENA_DEVICES at both ends, or at none"});
}

std::vector<Finding> check_lid(const HostFacts& host, const PathFacts& path) {
  if (!is_infiniband(host, path)) {
    if (path.dlid == 0 || path.device.empty()) return {};
    return {finding(
        Severity::kWarning, "lid", path.peer, fmt::format("DLID {} on an Ethernet port", path.dlid),
        {"RoCE has no LIDs: the DGID alone says where to", "leave the LID out, and set is_global and the GID"})};
  }
  const PortFacts* port = local_port(host, path);
  if (path.dlid == 0 && !path.far) {
    return {finding(Severity::kNote, "lid", path.peer, "the LID of the peer's port is not known",
                    {"on InfiniBand the LID says where to, and nothing but a server on the peer tells it here",
                     "start `verbena doctor --serve` there and run this again, or give --dlid"})};
  }
  if (path.dlid == 0 && path.far->lid == 0) {
    return {wrong_lid(path, fmt::format("the peer's port {} has no LID", path.far->device),
                      {"no subnet manager has given it one; what is sent to LID 0 gets nowhere",
                       "start a subnet manager (opensm) on one host or switch of the fabric, then look again"})};
  }
  if (path.dlid == 0) {
    return {wrong_lid(path, "the destination LID is 0",
                      {"on InfiniBand the LID says where to; a program that sends a constant 0 is made for RoCE: the "
                       "handshake passes and each operation ends with IBV_WC_RETRY_EXC_ERR",
                       "exchange the LID of the port with the rest of the address"})};
  }
  if (path.dlid > kLastUnicastLid && !path.destination.is_multicast()) {
    return {wrong_lid(path, fmt::format("DLID {:#x} is a multicast LID", path.dlid),
                      {"unicast LIDs are 1 to 0xbfff", "check what the peer told"})};
  }
  if (is_own_lid_of_another(host, path, *port)) {
    return {wrong_lid(path, fmt::format("LID {} is this port's own, and the peer's port has it too", path.dlid),
                      path.local && path.local->kind == DeviceKind::kVerbena
                          ? Advice{"each port must have a LID of its own: what is sent there stays on this port. "
                                   "Where VERBENA_DEVICES says none, every port has LID 1",
                                   "give one of the two another lid= in VERBENA_DEVICES, and name both in VERBENA_LIDS"}
                          : Advice{"each port of a subnet must have a LID of its own: what is sent there stays on this "
                                   "port. The two are of different subnets, or have two subnet managers",
                                   "join them with a router and use the GID, or end one of the subnet managers"})};
  }
  if (path.far && path.far->lid != path.dlid && path.far->lid != 0) {
    return {
        wrong_lid(path,
                  fmt::format("DLID {}, and the port of {} has LID {}", path.dlid,
                              path.destination.is_zero() ? path.peer : address_text(path.destination), path.far->lid),
                  {"DGID and DLID belong to two ports: the fabric delivers by LID, and the receiver's port drops what "
                   "has another's GID",
                   "take both from one port of the peer"})};
  }
  if (path.far && !path.destination.is_zero() && !far_has(*path.far, path.destination)) {
    return {wrong_lid(
        path, fmt::format("the port with LID {} does not have the GID {}", path.dlid, to_string(path.destination)),
        {"DGID and DLID belong to two ports", "take both from one port of the peer"})};
  }
  if (port->view.grh_required && path.destination.is_zero()) {
    return {wrong_lid(path, "a destination by LID alone, and this port demands a GRH",
                      {"IBV_QPF_GRH_REQUIRED is set: ibv_create_ah and the change to RTR fail without is_global",
                       "give the peer's GID too"})};
  }
  return {good("lid", path.peer, fmt::format("LID {}", path.dlid))};
}

}  // namespace verbena::rdma
