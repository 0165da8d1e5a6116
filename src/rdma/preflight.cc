#include "verbena/preflight.h"

#include <algorithm>
#include <utility>

#include "rdma/doctor_device_checks.h"
#include "rdma/doctor_finding.h"
#include "rdma/doctor_gather.h"
#include "rdma/doctor_host_checks.h"
#include "rdma/doctor_interfaces.h"
#include "rdma/doctor_path_checks.h"
#include "rdma/doctor_process.h"

namespace verbena {

namespace {

void append(std::vector<Finding>& findings, std::vector<Finding> more) {
  std::move(more.begin(), more.end(), std::back_inserter(findings));
}

// What can be known of the host without a look at other devices and processes.
rdma::HostFacts facts_about(ibv_context* context) {
  rdma::HostFacts host;
  host.process = rdma::gather_process();
  host.interfaces = rdma::gather_interfaces();
  host.devices.push_back(rdma::gather_device(context));
  return host;
}

}  // namespace

const char* to_string(Severity severity) noexcept {
  switch (severity) {
    case Severity::kGood:
      return "good";
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kFailure:
      return "failure";
  }
  return "unknown";
}

std::vector<Finding> preflight(ibv_context* context, std::uint8_t port, const std::optional<Gid>& peer,
                               std::uint8_t hop_limit) {
  if (context == nullptr) {
    return {rdma::finding(Severity::kFailure, "port_state", "", "no device is open",
                          {"the context is empty or was closed", "open a device first"})};
  }
  rdma::HostFacts host = facts_about(context);
  rdma::DeviceFacts& device = host.devices.front();
  std::vector<Finding> findings;
  const rdma::PortFacts* facts = rdma::find_port(device, port);
  if (facts == nullptr) {
    findings.push_back(rdma::finding(Severity::kFailure, "port_state", device.name,
                                     "the device has no port " + std::to_string(port),
                                     {"ports count from 1", "name a port that the device has"}));
    return findings;
  }
  device.ports = {*facts};  // the path is to leave by this one
  append(findings, rdma::check_port(host, device, device.ports.front()));
  findings.push_back(rdma::check_memlock(host));
  if (!peer) return findings;
  append(findings, rdma::check_path(host, rdma::gather_path(host, {.peer = rdma::address_text(*peer),
                                                                   .destination = *peer,
                                                                   .hop_limit = hop_limit})));
  return findings;
}

Severity worst(const std::vector<Finding>& findings) noexcept {
  Severity worst = Severity::kGood;
  for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
  return worst;
}

std::uint32_t effective_mtu(std::uint32_t local_mtu, std::uint32_t peer_mtu, std::uint32_t route_ip_mtu,
                            bool ipv4) noexcept {
  constexpr std::uint32_t kTransport = 8 + 12 + 8 + 4 + 4;  // UDP, BTH, DETH, immediate data, ICRC
  constexpr std::uint32_t kSmallest = 256;
  constexpr std::uint32_t kLargest = 4096;
  const std::uint32_t overhead = kTransport + (ipv4 ? 20 : 40);
  std::uint32_t least = kLargest;
  if (local_mtu != 0) least = std::min(least, local_mtu);
  if (peer_mtu != 0) least = std::min(least, peer_mtu);
  if (route_ip_mtu != 0) least = std::min(least, route_ip_mtu > overhead ? route_ip_mtu - overhead : 0);
  std::uint32_t mtu = kLargest;
  while (mtu > least && mtu > kSmallest) mtu /= 2;
  return mtu;
}

}  // namespace verbena
