#include "rdma/doctor_host_checks.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "rdma/doctor_finding.h"
#include "rdma/doctor_process.h"
#include "rdma/doctor_software_checks.h"

namespace verbena::rdma {
namespace {

constexpr std::uint64_t kSmallMemlock = std::uint64_t{64} << 20;
constexpr int kPriorities = 8;

bool has_kernel_device(const HostFacts& host) {
  return !host.kernel_devices.empty() ||
         std::any_of(host.devices.begin(), host.devices.end(),
                     [](const DeviceFacts& d) { return d.kind != DeviceKind::kVerbena; });
}

bool has_software_device(const HostFacts& host) {
  return std::any_of(host.devices.begin(), host.devices.end(),
                     [](const DeviceFacts& device) { return device.kind == DeviceKind::kVerbena; });
}

// One that could not be looked at counts as Ethernet, which it is unless it was declared otherwise.
bool has_software_port(const HostFacts& host, LinkLayer link_layer) {
  return std::any_of(host.devices.begin(), host.devices.end(), [&](const DeviceFacts& device) {
    if (device.kind != DeviceKind::kVerbena) return false;
    if (device.ports.empty()) return link_layer == LinkLayer::kEthernet;
    return std::any_of(device.ports.begin(), device.ports.end(),
                       [&](const PortFacts& port) { return port.view.link_layer == link_layer; });
  });
}

std::string bytes_in_words(std::uint64_t bytes) {
  if (bytes >= (std::uint64_t{1} << 30)) return fmt::format("{} GiB", bytes >> 30);
  return bytes >= (1U << 20) ? fmt::format("{} MiB", bytes >> 20) : fmt::format("{} KiB", bytes >> 10);
}

// "0, 3, 5" for the bits that are set.
std::string priorities_in_words(std::uint8_t bits) {
  std::string text;
  for (int i = 0; i < kPriorities; ++i) {
    if ((bits & (1U << i)) != 0) text += (text.empty() ? "" : ", ") + std::to_string(i);
  }
  return text;
}

std::string loss_control_in_words(const LossControl& loss) {
  std::string text = "priority flow control ";
  if (!loss.pfc_priorities) {
    text += "not shown";
  } else {
    text +=
        *loss.pfc_priorities == 0 ? std::string("off") : "for priorities " + priorities_in_words(*loss.pfc_priorities);
  }
  text += loss.pause ? (*loss.pause ? ", global pause on" : ", global pause off") : ", global pause not shown";
  if (!loss.ecn_priorities) {
    text += ", RoCE congestion control (ECN) not shown";
  } else {
    text += *loss.ecn_priorities == 0
                ? std::string(", RoCE congestion control (ECN) off")
                : ", RoCE congestion control (ECN) for priorities " + priorities_in_words(*loss.ecn_priorities);
  }
  for (const auto& [dscp, priority] : loss.dscp_priorities)
    text += fmt::format(", DSCP {} -> priority {}", dscp, priority);
  if (loss.dscp_priorities.empty()) text += ", no DSCP rule shown";
  if (loss.default_tos) text += fmt::format(", rdma_cm traffic class {}", *loss.default_tos);
  return text;
}

// Kernel rxe holds the port by a socket that no process has: certain only for one who may look at all processes, and
// likely where such a device is there.
bool is_kernel(const HostFacts& host, const PortHolder& holder) {
  const bool software = std::any_of(host.devices.begin(), host.devices.end(), [](const DeviceFacts& device) {
    return device.kind == DeviceKind::kKernelSoftware;
  });
  return holder.pid == 0 && holder.uid == 0 && (host.sees_all_processes || software);
}

}  // namespace

Finding check_memlock(const HostFacts& host) {
  const ProcessFacts& process = host.process;
  if (!process.memlock_known) {
    return finding(Severity::kNote, "memlock", "", "the limit on locked memory is not known", {"getrlimit failed"});
  }
  if (!process.memlock_bytes) return good("memlock", "", "this process may lock as much memory as there is");
  const std::string seen = fmt::format("this process may lock {} of memory{}", bytes_in_words(*process.memlock_bytes),
                                       process.ipc_lock ? ", and CAP_IPC_LOCK lifts that" : "");
  if (process.ipc_lock || *process.memlock_bytes >= kSmallMemlock) return good("memlock", "", seen);
  if (!has_kernel_device(host)) {
    return good("memlock", "", seen + "; the software RNIC pins none, so that does not matter to it");
  }
  return finding(
      Severity::kWarning, "memlock", "", seen,
      {"kernel devices pin every registered buffer and every queue: ibv_reg_mr, ibv_create_cq and ibv_create_qp "
       "fail with ENOMEM where the sum is above it",
       "raise it above what is registered: ulimit -l unlimited, LimitMEMLOCK=infinity in the systemd unit, "
       "memlock of the container runtime, or add the capability IPC_LOCK to the container"});
}

Finding check_capabilities(const HostFacts& host) {
  const ProcessFacts& process = host.process;
  const auto word = [](bool has) { return has ? "yes" : "no"; };
  std::string seen =
      fmt::format("IPC_LOCK {}, NET_RAW {}, SYS_PTRACE {}{}", word(process.ipc_lock), word(process.net_raw),
                  word(process.sys_ptrace), process.in_user_namespace ? ", within a user namespace only" : "");
  std::string matters;
  if (!process.ipc_lock && has_kernel_device(host) && process.memlock_bytes && *process.memlock_bytes < kSmallMemlock) {
    matters = "without IPC_LOCK the limit on locked memory holds (see memlock)";
  }
  if (!process.net_raw && has_kernel_device(host)) {
    matters += matters.empty() ? "" : "; ";
    matters +=
        "without NET_RAW a kernel device refuses raw packet queue pairs, flow steering and privileged Q_Keys "
        "(EPERM); UD and RC need none of these";
  }
  if (!process.sys_ptrace && process.ptrace_scope.value_or(0) > 1 && has_software_device(host)) {
    matters += matters.empty() ? "" : "; ";
    matters += fmt::format(
        "Yama's ptrace_scope is {}: without SYS_PTRACE large transfers between processes of this host "
        "go through shared memory, not by one direct copy",
        *process.ptrace_scope);
  }
  if (matters.empty()) return good("capabilities", "", std::move(seen) + "; nothing here needs more");
  return finding(Severity::kNote, "capabilities", "", std::move(seen),
                 {std::move(matters), "add the capability to the container or the unit where that is needed"});
}

std::vector<Finding> check_char_devices(const HostFacts& host) {
  if (host.kernel_devices.empty()) return {};
  if (!host.unreadable_char_devices.empty()) {
    return {finding(Severity::kFailure, "char_devices", "",
                    fmt::format("cannot be opened: {}", fmt::join(host.unreadable_char_devices, ", ")),
                    {"this user, or the device rules of this container, do not allow it",
                     "chmod or a udev rule on the host; in a container let the device plugin hand it in"})};
  }
  if (host.char_devices.value_or(0) == 0) {
    return {finding(
        Severity::kFailure, "char_devices", "",
        fmt::format("the kernel has {}, and /dev/infiniband has no uverbs file", fmt::join(host.kernel_devices, ", ")),
        {"in a container: the device was not handed in; on a host: ib_uverbs is not loaded",
         "request the RDMA resource of the device plugin (or --device=/dev/infiniband); modprobe ib_uverbs"})};
  }
  return {good("char_devices", "", counted(*host.char_devices, "uverbs file, it opens", "uverbs files, all open"))};
}

Finding check_namespace_mode(const HostFacts& host) {
  if (!host.kernel_rdma) {
    return good("rdma_namespace", "", "the kernel has no RDMA subsystem loaded; the software RNIC needs none");
  }
  if (!host.namespace_mode) {
    return finding(Severity::kNote, "rdma_namespace", "", "shared or exclusive: not known",
                   {"the kernel is older than 5.1, or does not answer here", "rdma system show, on the host"});
  }
  if (*host.namespace_mode == RdmaNamespaceMode::kShared) {
    return good(
        "rdma_namespace", "",
        "shared: every network namespace sees every device; GIDs only where the interface is. Device plugins of "
        "the shared kind want this; a CNI that moves RDMA devices wants exclusive");
  }
  return good(
      "rdma_namespace", "",
      "exclusive: a device is in one network namespace. The shared device plugin refuses to start so "
      "(\"incorrect RDMA subsystem network namespace\": rdma system set netns shared); after a pod has ended, its "
      "device is to come back to the host by itself, or by rdma dev set NAME netns 1");
}

namespace {

// `name` is that of the finding.
Finding check_port_holders(const HostFacts& host, const std::string& name, const std::vector<PortHolder>& holders,
                           bool kernel_may_hold) {
  const PortHolder* foreign = nullptr;
  for (const PortHolder& holder : holders) {
    if (kernel_may_hold && is_kernel(host, holder)) {
      return finding(Severity::kFailure, name, "", fmt::format("held by the kernel on {}", holder.address),
                     {"kernel rxe has the port: the software RNIC cannot talk to other hosts from here",
                      "rdma link delete NAME for each rxe link; or use the rxe device; or stay on this host: "
                      "VERBENA_UDP=off"});
    }
    const bool other_user = holder.uid != host.process.uid;
    const bool unknown = holder.pid != 0 && holder.silence.empty();
    if (!holder.verbena && (other_user || unknown)) foreign = &holder;
  }
  if (foreign != nullptr) {
    const bool other_user = foreign->uid != host.process.uid;
    return finding(
        other_user ? Severity::kFailure : Severity::kWarning, name, "",
        fmt::format("held on {} by {}", foreign->address, holder_in_words(*foreign)),
        {other_user ? "the port can be shared by processes of one user only"
                    : "it is not known to run on the software RNIC",
         "end it, or run as that user, or give this process a network namespace or address of its own; VERBENA_UDP=off "
         "stays on this host"});
  }
  const auto silent =
      std::find_if(holders.begin(), holders.end(), [](const PortHolder& holder) { return !holder.silence.empty(); });
  if (silent != holders.end()) {
    return finding(Severity::kWarning, name, "",
                   fmt::format("held on {} by {}, on the software RNIC: {}", silent->address, holder_in_words(*silent),
                               silent->silence),
                   {"a process that does not answer takes no packets either",
                    "let it go on (kill -CONT PID) where it is stopped, and run this again; verbena drops names it as "
                    "well"});
  }
  if (holders.empty()) return good(name, "", "free");
  return good(name, "", fmt::format("shared with {} of this user", counted(holders.size(), "socket", "sockets")));
}

}  // namespace

Finding check_udp_port(const HostFacts& host) {
  if (!has_software_port(host, LinkLayer::kEthernet)) {
    return good("udp_4791", "", "no software RNIC here that would need UDP port 4791");
  }
  return check_port_holders(host, "udp_4791", host.udp_4791, true);
}

std::optional<Finding> check_infiniband_udp_port(const HostFacts& host) {
  if (!has_software_port(host, LinkLayer::kInfiniBand)) return std::nullopt;
  return check_port_holders(host, "udp_4797", host.udp_4797, false);
}

Finding check_loss_control(const InterfaceFacts& interface, DeviceKind kind) {
  const LossControl& loss = interface.loss;
  if (interface.loopback) return good("loss_control", interface.name, "loopback: nothing is lost on a wire");
  const std::string seen = loss_control_in_words(loss);
  const bool lossless = loss.pfc_priorities.value_or(0) != 0 || loss.pause.value_or(false);
  const bool shown = loss.pfc_priorities.has_value() || loss.pause.has_value();
  if (kind != DeviceKind::kHardware) {
    return good("loss_control", interface.name,
                seen +
                    "; a software device does without: its packets go through the kernel's queues, and what is lost "
                    "there UD loses and RC sends again");
  }
  if (!shown) {
    return finding(Severity::kNote, "loss_control", interface.name, seen,
                   {"whether this network loses packets under congestion is not shown by the driver",
                    "look at the switch, and at `mlnx_qos -i IFACE`, `dcb pfc show dev IFACE`, `ethtool -a IFACE`"});
  }
  if (!lossless) {
    return finding(Severity::kNote, "loss_control", interface.name, seen,
                   {"the network may drop packets under congestion: UD loses datagrams, RC falls back to go-back-N and "
                    "slows down much, up to IBV_WC_RETRY_EXC_ERR",
                    "set priority flow control or RoCE congestion control the same way on hosts and switches, or use a "
                    "protocol that repairs loss"});
  }
  if (loss.pfc_priorities.value_or(0) != 0 && loss.default_tos.value_or(0) == 0 && loss.dscp_priorities.empty()) {
    return finding(
        Severity::kNote, "loss_control", interface.name, seen,
        {"a lossless priority is there, and nothing shows that RDMA traffic is put into it: traffic class 0 goes "
         "into priority 0",
         "set the traffic class (DSCP * 4) of address handles and queue pairs to one that maps to it"});
  }
  return good("loss_control", interface.name, seen);
}

std::vector<Finding> check_host(const HostFacts& host) {
  std::vector<Finding> findings{check_memlock(host), check_capabilities(host)};
  for (Finding& finding : check_char_devices(host)) findings.push_back(std::move(finding));
  findings.push_back(check_namespace_mode(host));
  findings.push_back(check_udp_port(host));
  if (auto finding = check_infiniband_udp_port(host)) findings.push_back(std::move(*finding));
  for (Finding& finding : check_directories(host)) findings.push_back(std::move(finding));
  return findings;
}

}  // namespace verbena::rdma
