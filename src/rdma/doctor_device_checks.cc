#include "rdma/doctor_device_checks.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include <fmt/format.h>

#include "rdma/doctor_finding.h"
#include "rdma/doctor_software_checks.h"

namespace verbena::rdma {
namespace {

bool is_ethernet(const PortFacts& port) {
  return port.view.link_layer == LinkLayer::kEthernet;
}

std::vector<GidEntry> gids_of(const DeviceFacts& device, const PortFacts& port) {
  std::vector<GidEntry> gids;
  std::copy_if(device.gids.begin(), device.gids.end(), std::back_inserter(gids),
               [&](const GidEntry& entry) { return entry.port == port.view.port; });
  return gids;
}

// The interface behind a port, as its GIDs name it; 0 where none does.
std::uint32_t netdev_of(const std::vector<GidEntry>& gids) {
  for (const GidEntry& entry : gids) {
    if (entry.netdev != 0) return entry.netdev;
  }
  return 0;
}

bool any_active(const HostFacts& host) {
  return std::any_of(host.devices.begin(), host.devices.end(), [](const DeviceFacts& device) {
    return std::any_of(device.ports.begin(), device.ports.end(),
                       [](const PortFacts& port) { return port.view.active; });
  });
}

std::string names_of(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

Finding no_device(const HostFacts& host) {
  if (host.list_error) {
    return finding(Severity::kFailure, "devices", "", host.list_error->message,
                   {"libibverbs cannot list devices", "install libibverbs and load the driver (modprobe ib_uverbs)"});
  }
  if (!host.kernel_devices.empty()) {
    return finding(
        Severity::kFailure, "devices", "",
        fmt::format("the kernel has {}, and libibverbs lists none", names_of(host.kernel_devices)),
        {"the device's files in /dev/infiniband are not here, or its user-space driver is not installed",
         "in a container: request the device from the device plugin, so that /dev/infiniband/uverbs* is there; else "
         "install the package of the provider (ibverbs-providers, rdma-core)"});
  }
  if (host.namespace_mode == RdmaNamespaceMode::kExclusive) {
    return finding(
        Severity::kFailure, "devices", "", "no verbs device; the RDMA namespace mode is exclusive",
        {"in this mode a device belongs to one network namespace: it stands in another, perhaps still in that "
         "of a container that has gone",
         "move it here: rdma dev set NAME netns PID (or: rdma system set netns shared, while no other network "
         "namespace is there)"});
  }
  return finding(Severity::kFailure, "devices", "", "no verbs device",
                 {host.kernel_rdma ? "the kernel's RDMA subsystem is there and has no device in this namespace"
                                   : "no driver is loaded, or none for a device of this host",
                  "load the driver of the card; with no card use Verbena's own device: verbena run -- CMD"});
}

// What the software RNIC says of itself goes to stderr.
Advice advice_for_open_of_ours(const Error& error) {
  switch (error.system_errno) {
    case EADDRINUSE:
      return {
          "a LID of one of its InfiniBand ports is that of another port in this network namespace; stderr says "
          "which process has it",
          "give one of the two another lid= in VERBENA_DEVICES"};
    case EFBIG:
      return {
          "the limit on file sizes (ulimit -f) is smaller than the memory that the device shares with other "
          "processes",
          "raise it before this is started: ulimit -f unlimited"};
    case EINVAL:
      return {"a setting of the software RNIC is refused; it says which on stderr",
              "correct the variable VERBENA_... that is named there"};
    case EMFILE:
    case ENFILE:
      return {"no more open files are allowed", "close what is not needed; raise ulimit -n"};
    default:
      return {"the software RNIC says on stderr why it cannot be opened", "do what is said there (VERBENA_LOG=error)"};
  }
}

Advice advice_for_open(const DeviceFacts& device) {
  if (device.kind == DeviceKind::kVerbena) return advice_for_open_of_ours(*device.open_error);
  switch (device.open_error->code) {
    case ErrorCode::kPermission:
      return {"this user may not open its file in /dev/infiniband",
              "check the mode of /dev/infiniband/uverbs*; in a container the runtime must allow the device"};
    case ErrorCode::kExhausted:
      return {"no more open files are allowed, or no more contexts on the device",
              "close what is not needed; raise ulimit -n"};
    case ErrorCode::kInvalidArgument:
      return {"the provider refuses the kernel driver's version", "install rdma-core and driver of one release"};
    default:
      return {"the device does not open: its user-space driver and the kernel's do not fit, or it has gone",
              "look at dmesg, and compare `ibv_devinfo`"};
  }
}

std::string speed_in_words(std::uint64_t rate_mbps) {
  return rate_mbps == 0 ? std::string() : fmt::format(", {:g} Gbit/s", static_cast<double>(rate_mbps) / 1000);
}

Finding no_gid(const HostFacts& host, const DeviceFacts& device, const PortFacts& port) {
  const std::string evidence = fmt::format(
      "the port has no GID in this network namespace (its table has {} places, all empty)", port.view.gid_table_length);
  if (!is_ethernet(port)) {
    return finding(Severity::kFailure, "gid_table", port_name(device, port), evidence,
                   {"the port was not set up by a subnet manager", "start a subnet manager (opensm), check the cable"});
  }
  const bool only_loopback = std::all_of(host.interfaces.begin(), host.interfaces.end(),
                                         [](const InterfaceFacts& interface) { return interface.loopback; });
  return finding(
      Severity::kFailure, "gid_table", port_name(device, port), evidence,
      {fmt::format("the device can be seen, and {}; a GID is made for each address of the device's own interface, and "
                   "only where that interface is",
                   only_loopback ? "no interface but the loopback one is here"
                                 : "no interface of this network namespace belongs to it, or it has no address"),
       "on a host: bring its interface up and give it an address. In a pod or container: attach a secondary network on "
       "that card (macvlan, ipvlan, SR-IOV or host-device by Multus): the pod network alone does not do, and a device "
       "plugin gives only the character device"});
}

bool is_routed(const GidEntry& entry) {
  return !entry.gid.is_link_local() && !entry.gid.is_loopback() && entry.type != GidType::kRoceV1;
}

bool has_gid(const std::vector<GidEntry>& gids, const Gid& gid) {
  return std::any_of(gids.begin(), gids.end(), [&](const GidEntry& entry) { return entry.gid == gid; });
}

bool has_address(const InterfaceFacts& interface, const Gid& gid) {
  return std::any_of(interface.addresses.begin(), interface.addresses.end(),
                     [&](const InterfaceAddress& address) { return address.gid == gid; });
}

// A link-local GID may be made from the MAC address, whether or not the interface has that address.
bool is_stale(const InterfaceFacts& interface, const GidEntry& entry) {
  return !entry.gid.is_link_local() && !has_address(interface, entry.gid);
}

void append(std::string& list, const std::string& word) {
  list += (list.empty() ? "" : ", ") + word;
}

// GIDs that are no address of their interface here.
std::vector<Finding> check_gids_for_addresses(const HostFacts& host, const std::vector<GidEntry>& gids,
                                              const std::string& subject) {
  std::vector<Finding> findings;
  std::string stale;
  std::string foreign;
  for (const GidEntry& entry : gids) {
    const InterfaceFacts* interface = find_interface(host, entry.netdev);
    if (entry.netdev != 0 && interface == nullptr) append(foreign, to_string(entry.gid));
    if (interface != nullptr && is_stale(*interface, entry)) append(stale, address_text(entry.gid));
  }
  if (!foreign.empty()) {
    findings.push_back(
        finding(Severity::kWarning, "gid_addresses", subject, "not of this network namespace: " + foreign,
                {"the interface that they belong to is in another one; an address handle or a queue pair with such a "
                 "source is refused (EINVAL, ENODEV)",
                 "use only GIDs whose interface is here (verbena gids); never configure an index"}));
  }
  if (!stale.empty()) {
    findings.push_back(finding(
        Severity::kWarning, "gid_addresses", subject, "GIDs whose address has gone from the interface: " + stale,
        {"an address handle or queue pair still holds them, or the table lags behind; no answer comes back to "
         "such a source",
         "make address handles and queue pairs anew after IBV_EVENT_GID_CHANGE"}));
  }
  return findings;
}

// Addresses of the interface that are no GID, or cannot be one yet.
std::vector<Finding> check_addresses_for_gids(const InterfaceFacts& interface, const std::vector<GidEntry>& gids,
                                              const std::string& subject) {
  std::vector<Finding> findings;
  std::string missing;
  std::string unusable;
  for (const InterfaceAddress& address : interface.addresses) {
    if (address.tentative || address.duplicate) {
      append(unusable, address_text(address.gid) + (address.duplicate ? " (duplicate)" : " (tentative)"));
    } else if (!has_gid(gids, address.gid)) {
      append(missing, address_text(address.gid));
    }
  }
  if (!missing.empty()) {
    findings.push_back(finding(Severity::kWarning, "gid_addresses", subject,
                               fmt::format("addresses of {} without a GID: {}", interface.name, missing),
                               {"the table is full, or the driver has not followed; peers cannot be reached from there",
                                "set the interface down and up; look at dmesg"}));
  }
  if (!unusable.empty()) {
    findings.push_back(finding(Severity::kWarning, "gid_addresses", subject,
                               fmt::format("addresses of {} that cannot be used: {}", interface.name, unusable),
                               {"duplicate address detection has not ended, or found another holder",
                                "wait a second; give a duplicate one another value"}));
  }
  return findings;
}

}  // namespace

std::vector<Finding> check_devices(const HostFacts& host) {
  if (host.devices.empty()) return {no_device(host)};
  std::string names;
  std::vector<Finding> findings;
  for (const DeviceFacts& device : host.devices)
    append(names, fmt::format("{} ({})", device.name, to_string(device.kind)));
  findings.push_back(good("devices", "", names));
  for (const DeviceFacts& device : host.devices) {
    if (device.open_error) {
      findings.push_back(
          finding(Severity::kFailure, "device_open", device.name, device.open_error->message, advice_for_open(device)));
    }
  }
  return findings;
}

Finding check_port_state(const HostFacts& host, const DeviceFacts& device, const PortFacts& port) {
  if (!port.error.empty()) {
    return finding(Severity::kFailure, "port_state", port_name(device, port), port.error,
                   {"the port cannot be queried", "name a port that the device has"});
  }
  std::string seen = fmt::format("{}, {}, MTU {}{}", port.view.state, is_ethernet(port) ? "Ethernet" : "InfiniBand",
                                 port.view.active_mtu, speed_in_words(port.rate_mbps));
  if (port.view.active) return good("port_state", port_name(device, port), std::move(seen));
  const Severity severity = any_active(host) ? Severity::kWarning : Severity::kFailure;
  if (!is_ethernet(port) && device.kind == DeviceKind::kVerbena) {
    return finding(severity, "port_state", port_name(device, port), std::move(seen),
                   {"the interface that carries its packets is down, or has no link",
                    "bring up the interface that VERBENA_DEVICES names for it (ip link set IFACE up)"});
  }
  if (!is_ethernet(port)) {
    const bool initialising = port.view.state.find("INIT") != std::string::npos;
    return finding(severity, "port_state", port_name(device, port), std::move(seen),
                   {initialising ? "the link is up and no subnet manager has set the port up" : "there is no link",
                    initialising ? "start a subnet manager (opensm) on one host or switch of the fabric"
                                 : "check cable and switch port"});
  }
  const InterfaceFacts* interface = find_interface(host, netdev_of(gids_of(device, port)));
  if (interface == nullptr) {
    return finding(severity, "port_state", port_name(device, port), std::move(seen),
                   {"its interface is down, has no link, or is not in this network namespace",
                    "bring the interface up (ip link set IFACE up); check cable and switch port"});
  }
  const bool administrative = !interface->up;
  return finding(severity, "port_state", port_name(device, port), std::move(seen),
                 {fmt::format("interface {} is {}", interface->name, administrative ? "down" : "up, and has no link"),
                  administrative ? fmt::format("ip link set {} up", interface->name) : "check cable and switch port"});
}

Finding check_link_layer(const DeviceFacts& device, const PortFacts& port) {
  if (is_ethernet(port)) {
    return good(
        "link_layer", port_name(device, port),
        "Ethernet, so RoCE: each address needs a GRH (is_global = 1), a peer is named by its IP address as GID, "
        "the LID is 0 and means nothing; tools: ib_send_lat -x INDEX, ibv_ud_pingpong -g INDEX (verbena gids "
        "lists the indices), verbena ping, not ibping or ibstat");
  }
  if (port.view.active && port.view.lid == 0) {
    return finding(Severity::kFailure, "link_layer", port_name(device, port), "InfiniBand, and the LID is 0",
                   {"no subnet manager has given the port a LID; what is sent from LID 0 or to it gets nowhere",
                    "start a subnet manager (opensm), then look again"});
  }
  const char* tools =
      device.kind == DeviceKind::kVerbena
          ? "verbena ping, ib_send_lat without -x, ibv_ud_pingpong without -g; not ibping or sminfo, for "
            "there are no MADs, and a real fabric is not reached"
          : "ibping, ibstat, sminfo, ib_send_lat without -x";
  return good(
      "link_layer", port_name(device, port),
      fmt::format("InfiniBand, LID {}, subnet manager at LID {}: a peer in this subnet is named by its LID; a GRH "
                  "is needed {}; tools: {}",
                  port.view.lid, port.sm_lid,
                  port.view.grh_required ? "always, this port demands it" : "only to cross a router", tools));
}

Finding check_gid_table(const HostFacts& host, const DeviceFacts& device, const PortFacts& port) {
  if (device.gid_error) {
    return finding(Severity::kFailure, "gid_table", port_name(device, port), device.gid_error->message,
                   {"the driver does not give its table", "look at dmesg; update the driver"});
  }
  const std::vector<GidEntry> gids = gids_of(device, port);
  if (gids.empty()) return no_gid(host, device, port);
  if (!is_ethernet(port)) {
    return good("gid_table", port_name(device, port), fmt::format("{}", counted(gids.size(), "GID", "GIDs")));
  }
  const auto routed = static_cast<std::uint64_t>(std::count_if(gids.begin(), gids.end(), is_routed));
  if (routed > 0) {
    return good("gid_table", port_name(device, port),
                fmt::format("{}, {} with an address that can be routed", counted(gids.size(), "GID", "GIDs"), routed));
  }
  const bool loopback =
      std::all_of(gids.begin(), gids.end(), [](const GidEntry& entry) { return entry.gid.is_loopback(); });
  return finding(Severity::kNote, "gid_table", port_name(device, port),
                 fmt::format("{}, all {}", counted(gids.size(), "GID", "GIDs"),
                             loopback ? "of the loopback interface" : "link-local or RoCE v1"),
                 {loopback ? "it reaches this host only" : "they reach hosts on the same link only",
                  "give the interface an address that can be routed, where peers are farther away"});
}

std::vector<Finding> check_gid_addresses(const HostFacts& host, const DeviceFacts& device, const PortFacts& port) {
  const std::vector<GidEntry> gids = gids_of(device, port);
  if (!is_ethernet(port) || gids.empty()) return {};
  std::vector<Finding> findings = check_gids_for_addresses(host, gids, port_name(device, port));
  for (const InterfaceFacts& interface : host.interfaces) {
    const bool ours =
        std::any_of(gids.begin(), gids.end(), [&](const GidEntry& entry) { return entry.netdev == interface.index; });
    if (!ours) continue;
    for (Finding& each : check_addresses_for_gids(interface, gids, port_name(device, port))) {
      findings.push_back(std::move(each));
    }
  }
  if (findings.empty()) {
    findings.push_back(good("gid_addresses", port_name(device, port), "every GID is an address of its interface here"));
  }
  return findings;
}

std::vector<Finding> check_gid_types(const DeviceFacts& device, const PortFacts& port) {
  const std::vector<GidEntry> gids = gids_of(device, port);
  if (!is_ethernet(port) || gids.empty()) return {};
  const auto v2 = std::count_if(gids.begin(), gids.end(), [](const GidEntry& e) { return e.type == GidType::kRoceV2; });
  const auto v1 = std::count_if(gids.begin(), gids.end(), [](const GidEntry& e) { return e.type == GidType::kRoceV1; });
  const std::string seen = fmt::format("{} of RoCE v2, {} of RoCE v1", v2, v1);
  if (v2 == 0) {
    return {finding(Severity::kWarning, "gid_types", port_name(device, port), seen,
                    {"RoCE v1 has no IP header: it cannot be routed, and a peer with RoCE v2 does not hear it",
                     "enable RoCE v2 on the device (driver option, cma_roce_mode)"})};
  }
  if (v1 == 0) return {good("gid_types", port_name(device, port), seen)};
  return {
      finding(Severity::kNote, "gid_types", port_name(device, port), seen,
              {"each address stands in the table twice; a program that takes the first IPv4 GID may take v1, and its "
               "peer sees nothing (IBV_WC_RETRY_EXC_ERR)",
               "choose by type, not by index: verbena gids shows both"})};
}

std::vector<Finding> check_port_mtu(const HostFacts& host, const DeviceFacts& device, const PortFacts& port) {
  const InterfaceFacts* interface = find_interface(host, netdev_of(gids_of(device, port)));
  if (!is_ethernet(port) || interface == nullptr || port.view.active_mtu == 0) return {};
  constexpr std::uint32_t kIpv4WithoutImmediate = 20 + 8 + 12 + 8 + 4;
  const std::string seen =
      fmt::format("RoCE MTU {} on {} with MTU {}", port.view.active_mtu, interface->name, interface->mtu);
  if (port.view.active_mtu + kIpv4WithoutImmediate > interface->mtu) {
    return {finding(Severity::kFailure, "mtu", port_name(device, port), seen,
                    {"a full datagram with its headers does not fit into a frame: it is dropped without a word",
                     fmt::format("ip link set {} mtu {}", interface->name, port.view.active_mtu + 128)})};
  }
  if (port.view.active_mtu >= 4096 || interface->loopback) return {good("mtu", port_name(device, port), seen)};
  return {finding(
      Severity::kNote, "mtu", port_name(device, port), seen,
      {"RoCE takes the largest of 256, 512, 1024, 2048, 4096 that fits with its headers",
       fmt::format("for 4096: an MTU of 4200 or more on {}, its peers and all switches between", interface->name)})};
}

std::vector<Finding> check_port(const HostFacts& host, const DeviceFacts& device, const PortFacts& port) {
  std::vector<Finding> findings{check_port_state(host, device, port)};
  if (!port.error.empty()) return findings;
  findings.push_back(check_link_layer(device, port));
  findings.push_back(check_gid_table(host, device, port));
  for (auto& more :
       {check_gid_addresses(host, device, port), check_gid_types(device, port), check_port_mtu(host, device, port)}) {
    findings.insert(findings.end(), more.begin(), more.end());
  }
  return findings;
}

Finding check_resources(const HostFacts& host, const DeviceFacts& device) {
  if (device.kind == DeviceKind::kVerbena) return check_software_resources(host, device);
  if (!device.resources) {
    return finding(
        Severity::kNote, "resources", device.name, "the kernel does not tell what exists on the device",
        {"its RDMA netlink has no resource counts, or may not be asked from here", "rdma resource show, on the host"});
  }
  std::string seen;
  std::string full;
  for (const ResourceCount& count : *device.resources) {
    append(seen, count.limit == 0 ? fmt::format("{} {}", count.current, count.name)
                                  : fmt::format("{} of {} {}", count.current, count.limit, count.name));
    if (count.limit != 0 && count.current * 10 >= count.limit * 9) append(full, count.name);
  }
  const std::string unseen = "; address handles are not counted by the kernel";
  if (full.empty()) return good("resources", device.name, seen + unseen);
  return finding(Severity::kWarning, "resources", device.name, seen + unseen,
                 {fmt::format("nearly used up: {}; the next creation may fail with ENOMEM", full),
                  "find who holds them (rdma resource show qp, mr, pd) and whether they leak"});
}

}  // namespace verbena::rdma
