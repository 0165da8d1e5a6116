#include "cli/udp_port_holder.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "rdma/doctor_interfaces.h"
#include "rdma/doctor_process.h"

namespace verbena::cli {
namespace {

// A socket of "::" takes IPv4 too, unless it was told not to.
bool covers(const rdma::PortHolder& holder, const Gid& address) {
  if (holder.address == "::") return true;
  if (holder.address == "0.0.0.0") return address.is_ipv4_mapped();
  return parse_gid(holder.address) == address;
}

bool udp_is_off() {
  const char* value = std::getenv("VERBENA_UDP");
  return value != nullptr && (std::string_view(value) == "off" || std::string_view(value) == "0");
}

}  // namespace

std::string udp_port_holder(const std::vector<rdma::PortHolder>& holders, const Gid& address, std::uint32_t self) {
  const rdma::PortHolder* found = nullptr;
  for (const rdma::PortHolder& holder : holders) {
    if (!covers(holder, address)) continue;
    if (holder.pid == self) return {};
    if (found == nullptr || found->pid == 0) found = &holder;
  }
  if (found == nullptr) return {};
  if (found->pid == 0 && found->uid == 0) return "the kernel (rxe) or a process of root";
  return rdma::holder_in_words(*found);
}

std::vector<HeldPort> held_carriers(const std::vector<rdma::PortHolder>& holders,
                                    const std::vector<rdma::InterfaceFacts>& interfaces, std::uint32_t self) {
  std::vector<HeldPort> all;
  std::vector<HeldPort> near;
  for (const rdma::InterfaceFacts& interface : interfaces) {
    std::vector<HeldPort> held;
    bool has_others = false;
    for (const rdma::InterfaceAddress& address : interface.addresses) {
      if (std::string by = udp_port_holder(holders, address.gid, self); !by.empty()) {
        held.push_back({address.gid, std::move(by)});
      }
      has_others |= std::any_of(holders.begin(), holders.end(), [&](const rdma::PortHolder& holder) {
        return holder.pid == self && covers(holder, address.gid);
      });
    }
    all.insert(all.end(), held.begin(), held.end());
    if (has_others) near.insert(near.end(), held.begin(), held.end());
  }
  const bool has_some =
      std::any_of(holders.begin(), holders.end(), [self](const auto& holder) { return holder.pid == self; });
  return has_some ? near : all;
}

UdpPortHolders UdpPortHolders::read(rdma::DeviceKind kind, LinkLayer link_layer) {
  UdpPortHolders made;
  made.link_layer_ = link_layer;
  const bool infiniband = link_layer == LinkLayer::kInfiniBand;
  made.port_ = infiniband ? rdma::kInfinibandUdpPort : rdma::kRoceUdpPort;
  if (kind != rdma::DeviceKind::kVerbena || udp_is_off()) return made;
  made.holders_ = rdma::gather_port_holders(made.port_);
  if (infiniband && !made.holders_.empty()) {
    made.carriers_ = held_carriers(made.holders_, rdma::gather_interfaces(), static_cast<std::uint32_t>(::getpid()));
  }
  return made;
}

std::vector<HeldPort> UdpPortHolders::of(const std::vector<GidEntry>& table, std::uint8_t port) const {
  if (link_layer_ == LinkLayer::kInfiniBand) return carriers_;
  std::vector<HeldPort> held;
  for (const GidEntry& entry : table) {
    if (entry.port != port) continue;
    if (std::string by = of(entry.gid); !by.empty()) held.push_back({entry.gid, std::move(by)});
  }
  return held;
}

std::string UdpPortHolders::of(const Gid& gid) const {
  if (link_layer_ == LinkLayer::kInfiniBand) return carriers_.empty() ? std::string{} : carriers_.front().by;
  return udp_port_holder(holders_, gid, static_cast<std::uint32_t>(::getpid()));
}

}  // namespace verbena::cli
