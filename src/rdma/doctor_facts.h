// What a doctor knows before it judges: the facts about this host, and about the way to a peer, as plain values.
//
// Gatherers (doctor_gather.h and what it uses) fill them from verbs, netlink, /proc and /sys; checks
// (doctor_*_checks.h) are pure functions from them to findings, so that every case that ever puzzled somebody can be
// written down as facts and tested. What could not be learned is nothing (std::nullopt), never a guess.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rdma/device_kind.h"
#include "verbena/device.h"
#include "verbena/gid.h"
#include "verbena/gid_resolver.h"
#include "verbena/gid_table.h"
#include "verbena/network_change.h"
#include "verbena/result.h"
#include "verbena/route.h"

namespace verbena::rdma {

struct InterfaceAddress {
  Gid gid{};
  std::uint8_t prefix_length = 0;  // of the family's own length: 24 for 10.0.0.1/24
  bool tentative = false;          // duplicate address detection has not ended
  bool duplicate = false;          // and it found another holder
};

// How an interface treats congestion, as far as the driver tells.
struct LossControl {
  std::optional<std::uint8_t> pfc_priorities{};        // one bit a priority that priority flow control holds
  std::optional<bool> pause{};                         // global pause frames, in either direction
  std::optional<std::uint8_t> ecn_priorities{};        // one bit a priority for which RoCE congestion control is on
  std::optional<std::uint8_t> default_tos{};           // traffic class that rdma_cm sets where the program does not
  std::vector<std::pair<int, int>> dscp_priorities{};  // DSCP -> priority, where DCB has such rules
};

struct InterfaceFacts {
  std::uint32_t index = 0;
  std::string name{};
  bool up = false;       // set up by the administrator
  bool carrier = false;  // has a link
  bool loopback = false;
  std::uint32_t mtu = 0;
  std::vector<InterfaceAddress> addresses{};
  LossControl loss{};
};

struct PortFacts {
  PortView view{};
  std::string error{};          // not empty: the port could not be queried, and why
  std::uint64_t rate_mbps = 0;  // width times speed; 0: not known
  std::uint16_t sm_lid = 0;     // InfiniBand: the subnet manager's
};

// What exists on a device, counted over all processes.
struct ResourceCount {
  std::string name{};         // "pd", "cq", "qp", "mr", "ah", ...
  std::uint64_t current = 0;  //
  std::uint64_t limit = 0;    // 0: not known
};

struct DeviceFacts {
  std::string name{};
  DeviceKind kind = DeviceKind::kHardware;
  std::optional<Error> open_error{};
  std::uint64_t max_ah = 0;  // 0: the device does not say
  std::uint64_t max_qp = 0;
  std::uint64_t max_pd = 0;
  std::uint64_t max_cq = 0;
  std::uint64_t max_mr = 0;
  std::uint64_t max_cqe = 0;
  std::uint64_t max_qp_wr = 0;
  std::vector<PortFacts> ports{};
  std::vector<GidEntry> gids{};
  std::optional<Error> gid_error{};
  std::optional<std::vector<ResourceCount>> resources{};  // nothing: the kernel does not tell
};

struct ProcessFacts {
  std::uint32_t uid = 0;
  std::optional<std::uint64_t> memlock_bytes{};  // nothing: no limit
  bool memlock_known = true;
  bool ipc_lock = false;  // CAP_IPC_LOCK, effective
  bool net_raw = false;   // CAP_NET_RAW
  bool sys_ptrace = false;
  bool in_user_namespace = false;        // capabilities hold only inside of it
  std::optional<int> ptrace_scope{};     // of Yama; nothing: no Yama
  std::optional<std::uint64_t> files{};  // open files allowed; nothing: no limit
};

// Who has UDP port 4791, or 4797, open in this network namespace.
struct PortHolder {
  std::string address{};  // "10.0.0.1", "::"
  std::uint32_t uid = 0;
  std::uint64_t inode = 0;
  std::uint32_t pid = 0;  // 0: no process that can be seen from here
  std::string process{};
  bool verbena = false;   // it is known to run on the software RNIC
  std::string silence{};  // not empty: it runs on it too, gave no counters, and why
};

enum class RdmaNamespaceMode { kShared, kExclusive };

// What one process has made on a device of its own, in words ("address handles").
struct SoftwareDevice {
  std::string name{};
  std::vector<ResourceCount> counts{};
};

// A process on the software RNIC, from its counter page.
struct SoftwareProcess {
  std::uint32_t pid = 0;
  std::string name{};
  std::vector<SoftwareDevice> devices{};
  std::string silence{};  // not empty: it is there and gave no counters, and why
};

// An address-handle directory of a running process, whatever its device.
struct DirectoryFacts {
  std::uint32_t pid = 0;
  std::string process{};
  std::string name{};
  std::uint64_t live = 0;      // address handles that it holds now
  std::uint64_t failed = 0;    // attempts that ended in an error, since it began
  std::uint64_t negative = 0;  // destinations that are remembered as failed, now
  std::uint64_t refused = 0;   // answers that a limit was reached, since it began
};

struct HostFacts {
  ProcessFacts process{};
  std::vector<InterfaceFacts> interfaces{};  // of this network namespace
  std::vector<DeviceFacts> devices{};
  std::optional<Error> list_error{};
  bool sees_all_processes = false;                     // root: every process' sockets can be looked at
  bool kernel_rdma = false;                            // the kernel's RDMA subsystem answers
  std::optional<RdmaNamespaceMode> namespace_mode{};   // nothing: not known
  std::vector<std::string> kernel_devices{};           // as the kernel lists them in this namespace
  std::vector<std::string> unreadable_char_devices{};  // of /dev/infiniband, that this user cannot open
  std::optional<std::size_t> char_devices{};           // uverbs*; nothing: there is no /dev/infiniband
  std::vector<PortHolder> udp_4791{};
  std::vector<PortHolder> udp_4797{};
  std::vector<SoftwareProcess> software_processes{};
  std::vector<DirectoryFacts> directories{};
};

// The kernel's neighbour entry for a next hop.
struct NeighbourFacts {
  enum class State { kNone, kIncomplete, kReachable, kStale, kDelay, kProbe, kFailed, kNoArp, kPermanent };
  State state = State::kNone;
  Gid address{};
  std::uint32_t netdev = 0;
  std::optional<MacAddress> mac{};
};

// A port as its own host describes it: the far end of a session.
struct FarPort {
  std::string device{};
  std::string netdev{};
  std::optional<LinkLayer> link_layer{};
  std::vector<Gid> gids{};
  std::vector<std::optional<GidType>> types{};  // of each of them; may be shorter
  std::uint32_t mtu = 0;                        // RoCE or InfiniBand MTU
  std::uint32_t interface_mtu = 0;              // 0: not told
  std::uint64_t rate_mbps = 0;                  // 0: not told
  std::uint16_t lid = 0;
  std::uint32_t qkey = 0;
};

// Datagrams of one size, there and back.
struct ProbeSeries {
  std::size_t bytes = 0;
  std::uint64_t planned = 0;  // 0: not said
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t corrupt = 0;
  std::uint64_t duplicate = 0;
  std::int64_t median_ns = 0;
  std::uint64_t unsent = 0;  // for there was no address handle
  std::string unsent_why{};
};

struct ProbeFacts {
  std::optional<Error> connect_error{};                        // no session: nothing was sent
  std::optional<Error> address_error{};                        // the directory could not make an address handle
  std::optional<Error> session_error{};                        // the session broke
  std::int64_t address_ns = 0;                                 // how long the address handle took
  std::vector<ProbeSeries> series{};                           // the small one first
  std::vector<std::pair<std::string, std::uint64_t>> drops{};  // of this process, named, not zero
};

// The local port that was taken, as far as its words depend on it.
struct LocalPort {
  LinkLayer link_layer = LinkLayer::kEthernet;
  DeviceKind kind = DeviceKind::kHardware;
  std::uint16_t lid = 0;
};

// What is asked about, and what was found on the way there.
struct PathFacts {
  std::string peer{};      // as the user named it
  Gid destination{};       // zero: by LID only
  std::uint16_t dlid = 0;  // InfiniBand
  std::string device{};    // the local one that was taken; empty: none fits, and source_error says why
  std::uint8_t port = 0;
  std::optional<LocalPort> local{};  // nothing: none was taken
  std::uint8_t hop_limit = 64;
  std::optional<std::uint8_t> kernel_hop_limit{};  // the device sends with this one, whatever is asked for
  std::uint8_t static_rate = 0;                    // an ibv_rate
  std::uint8_t traffic_class = 0;
  std::optional<std::uint32_t> qkey{};   // the one that is to be used with the peer
  std::optional<std::uint64_t> peers{};  // how many address handles there will be
  std::optional<SourceChoice> source{};
  std::optional<Error> source_error{};
  std::optional<Route> route{};  // of the kernel, whatever the device
  std::optional<Error> route_error{};
  std::optional<NeighbourFacts> neighbour{};  // of the next hop, by the route's interface; nothing: not looked for
  std::vector<NeighbourFacts> neighbours_elsewhere{};  // of the same address by other interfaces
  std::optional<FarPort> far{};                        // nothing: no session, so the far end is not known
};

}  // namespace verbena::rdma
