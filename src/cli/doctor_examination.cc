#include "cli/doctor_examination.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/doctor_probe.h"
#include "cli/doctor_processes.h"
#include "cli/ping_session.h"
#include "rdma/doctor_device_checks.h"
#include "rdma/doctor_finding.h"
#include "rdma/doctor_gather.h"
#include "rdma/doctor_host_checks.h"
#include "rdma/doctor_path_checks.h"
#include "verbena/resolve.h"

namespace verbena::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kConnectPatience = 5s;

void append(std::vector<Finding>& findings, std::vector<Finding> more) {
  std::move(more.begin(), more.end(), std::back_inserter(findings));
}

std::vector<Finding> check_this_host(const rdma::HostFacts& host, const PortName& wanted) {
  rdma::HostFacts asked = host;  // of the device that was named, and of no other
  std::erase_if(asked.devices, [&](const rdma::DeviceFacts& device) { return !wanted.names_device(device.name); });
  std::vector<Finding> findings = rdma::check_devices(asked);
  std::vector<std::uint32_t> interfaces_seen;
  for (const rdma::DeviceFacts& device : host.devices) {
    if (device.open_error || !wanted.names_device(device.name)) continue;
    for (const rdma::PortFacts& port : device.ports) {
      if (wanted.names_port(port.view.port)) append(findings, rdma::check_port(host, device, port));
    }
    for (const GidEntry& entry : device.gids) {
      if (!wanted.names_port(entry.port)) continue;
      const rdma::InterfaceFacts* interface = rdma::find_interface(host, entry.netdev);
      if (interface == nullptr ||
          std::find(interfaces_seen.begin(), interfaces_seen.end(), interface->index) != interfaces_seen.end()) {
        continue;
      }
      interfaces_seen.push_back(interface->index);
      findings.push_back(rdma::check_loss_control(*interface, device.kind));
    }
    findings.push_back(rdma::check_resources(host, device));
  }
  append(findings, rdma::check_host(host));
  return findings;
}

Status check_port_is_there(const rdma::HostFacts& host, const PortName& wanted) {
  if (wanted.device.empty()) return {};
  const rdma::DeviceFacts* device = rdma::find_device(host, wanted.device);
  if (device == nullptr) {
    const auto context = Context::open(wanted.device);  // says which there are
    return context ? Status() : Status(tl::make_unexpected(context.error()));
  }
  if (wanted.port == 0 || device->open_error || rdma::find_port(*device, wanted.port) != nullptr) return {};
  return failure(ErrorCode::kNotFound, fmt::format("{} has no port {}: its ports are 1 to {}", wanted.device,
                                                   wanted.port, device->ports.size()));
}

// The towards-a-peer half of a visit.
class PeerVisit {
 public:
  PeerVisit(const ExaminationOptions& options, const rdma::HostFacts& host) : options_(options), host_(host) {}

  std::vector<Finding> run();

 private:
  void meet();
  void choose_destination(const std::vector<HostAddress>& addresses);
  std::vector<Finding> check_way(const rdma::PathFacts& path) const;
  std::optional<std::size_t> first_reachable(const std::vector<HostAddress>& addresses) const;

  const ExaminationOptions& options_;
  const rdma::HostFacts& host_;
  std::optional<DoctorSession> session_;
  rdma::ProbeFacts probe_;
  rdma::PathQuestion question_;
  std::vector<Finding> findings_;
};

void PeerVisit::meet() {
  if (!options_.probe) return;
  auto session = meet_server(options_.peer, options_.tcp_port, Deadline::in(kConnectPatience));
  if (session) {
    session_ = std::move(*session);
  } else {
    probe_.connect_error = session.error();
  }
}

std::optional<std::size_t> PeerVisit::first_reachable(const std::vector<HostAddress>& addresses) const {
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    rdma::PathQuestion question = question_;
    question.destination = addresses[i].gid;
    question.netdev = addresses[i].netdev;
    if (rdma::gather_path(host_, question).source) return i;
  }
  return std::nullopt;
}

// What the user said; else the address that was named, where it is a GID of the far port; else the best GID of that.
void PeerVisit::choose_destination(const std::vector<HostAddress>& addresses) {
  const bool infiniband = session_ && session_->hello.link_layer == "infiniband";
  question_.dlid = options_.names_dlid || !session_ || !infiniband ? options_.dlid : session_->hello.lid;
  if (options_.dgid) {
    question_.destination = *options_.dgid;
    return;
  }
  std::vector<HostAddress> candidates = addresses;
  if (session_) {
    const auto& gids = session_->hello.gids;
    std::erase_if(candidates, [&](const HostAddress& address) {
      return std::find(gids.begin(), gids.end(), address.gid) == gids.end();
    });
    const bool elsewhere = candidates.empty() && !gids.empty();
    if (elsewhere) {
      for (const Gid& gid : gids) candidates.push_back({gid, 0});
    }
    if (elsewhere && !infiniband) {  // where no name leads to a GID
      findings_.push_back(rdma::finding(
          Severity::kNote, "peer_address", options_.peer,
          fmt::format("{} is no GID of the peer's port {}", rdma::address_text(addresses.front().gid),
                      session_->hello.device),
          {"the name leads to another interface of the peer than the RDMA device's, as a management network does",
           "GIDs are exchanged, so this does no harm; to name the peer for RDMA use one of its GIDs"}));
    }
  }
  if (candidates.empty()) candidates = addresses;
  const HostAddress& chosen = candidates[first_reachable(candidates).value_or(0)];
  question_.destination = chosen.gid;
  question_.netdev = chosen.netdev;
}

// Over InfiniBand nothing is known of the peer that was neither given nor told: its IP address says nothing there.
std::vector<Finding> PeerVisit::check_way(const rdma::PathFacts& path) const {
  const bool by_lid = path.local && path.local->link_layer == LinkLayer::kInfiniBand;
  if (!by_lid || session_ || options_.dgid || options_.dlid != 0) return rdma::check_path(host_, path);
  return rdma::check_lid(host_, path);
}

std::vector<Finding> PeerVisit::run() {
  const auto addresses = resolve_host(options_.peer, Deadline::in(kConnectPatience));
  if (!addresses) {
    return {rdma::finding(
        Severity::kFailure, "peer_name", options_.peer, addresses.error().message,
        {"the name is not known here, or the name service does not answer", "correct it, or give the address"})};
  }
  question_ = {.peer = options_.peer,
               .device = options_.port.device,
               .port = options_.port.port,
               .hop_limit = options_.hop_limit,
               .static_rate = options_.static_rate,
               .traffic_class = options_.traffic_class,
               .qkey = options_.qkey,
               .peers = options_.peers};
  meet();
  if (session_ && !question_.qkey) question_.qkey = session_->hello.qkey;
  if (session_) question_.link_layer = far_port_of(session_->hello).link_layer;
  choose_destination(*addresses);
  rdma::PathFacts path = rdma::gather_path(host_, question_);
  if (session_) path.far = far_port_of(session_->hello);
  append(findings_, check_way(path));
  if (rdma::check_link_layers(path)) return std::move(findings_);  // a probe would find no more
  if (session_ && !path.device.empty()) {
    probe_ = probe(*session_, path);
  } else if (session_) {
    probe_.address_error = path.source_error;
  }
  if (options_.probe) {
    append(findings_, rdma::check_probe(probe_, path));
  } else {
    findings_.push_back(rdma::finding(Severity::kNote, "probe", options_.peer, "not asked for (--no-probe)",
                                      {"only checks of this host were made: nothing shows that data moves"}));
  }
  return std::move(findings_);
}

}  // namespace

Result<std::vector<Finding>> examine(const ExaminationOptions& options) {
  rdma::HostFacts host = rdma::gather_host();
  if (Status status = check_port_is_there(host, options.port); !status) return tl::make_unexpected(status.error());
  add_running_processes(host);
  std::vector<Finding> findings = check_this_host(host, options.port);
  if (!options.peer.empty()) append(findings, PeerVisit(options, host).run());
  return findings;
}

}  // namespace verbena::cli
