#include "device/port.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "device/interface_speed.h"
#include "device/log.h"
#include "device/rcu.h"
#include "wire/ethernet_frame.h"
#include "wire/infiniband_header.h"
#include "wire/mtu.h"

namespace verbena::device {

namespace {

// What LRH, GRH and the carrier's IP header take beyond what wire::mtu_of_interface() allows for.
constexpr std::uint32_t kInfinibandHeaders = 56;
// Of an interface that nobody has seen yet.
constexpr std::uint32_t kUsualMtu = 1500;

}  // namespace

Port::Port(const Device& device, std::uint8_t number, DeviceCounters counters, bool use_udp)
    : device_(device),
      number_(number),
      counters_(std::move(counters)),
      use_udp_(use_udp),
      snapshot_(new PortSnapshot{.number = number,
                                 .count = static_cast<std::uint8_t>(device.ports().size()),
                                 .interface_index = identity().interface_index,
                                 .gids = {},
                                 .infiniband = {}}),
      interface_index_(identity().interface_index),
      interface_name_(identity().interface_name) {}

Port::~Port() {
  delete snapshot_.load(std::memory_order_relaxed);
}

engine::PortView PortSnapshot::view() const noexcept {
  engine::PortView view{
      .number = number, .count = count, .link_layer = engine::LinkLayer::kEthernet, .mtu = mtu, .gids = gids.entries()};
  const std::uint32_t payload = interface_mtu == 0 ? kUsualMtu : interface_mtu;
  view.frame_size = payload + static_cast<std::uint32_t>(wire::kEthernetSize + wire::kVlanTagSize);
  if (!infiniband) return view;
  view.link_layer = engine::LinkLayer::kInfiniband;
  view.lid = infiniband->lid;
  view.lmc = infiniband->lmc;
  view.process_port = index;
  view.pkeys = infiniband->pkeys;
  return view;
}

PortSnapshot Port::copy() const {
  const RcuReadSection section;
  return snapshot();
}

std::string Port::interface_name() const {
  const std::lock_guard guard(mutex_);
  return interface_name_;
}

const Interface* Port::find_in(const Network& network) const {
  const Interface* interface = find_interface(network, interface_index_);
  if (interface == nullptr) interface = find_interface(network, interface_name());
  if (interface == nullptr) interface = find_interface(network, identity().interface_name);
  return interface;
}

Status Port::configure(const InfinibandPort& configuration) {
  give_up_lids(configuration);
  if (claim_ == nullptr) {
    auto claim = LidClaim::take(configuration);
    if (!claim) return tl::make_unexpected(claim.error());
    claim_ = std::move(*claim);
  }
  configuration_ = configuration;
  return {};
}

void Port::give_up_lids(const InfinibandPort& next) noexcept {
  if (configuration_ && (configuration_->lid != next.lid || configuration_->lmc != next.lmc)) claim_.reset();
}

LidRoute Port::lid_route() const {
  return {.lids = {configuration_->lid, configuration_->last_lid()}, .udp_ports = udp_ports()};
}

// Of which UDP is opened: the GIDs of RoCE; of InfiniBand those of the interface that carries it.
std::set<Gid> Port::wanted_addresses(const Interface& interface, const PortSnapshot& snapshot) const {
  std::set<Gid> wanted;
  if (configuration_) {
    for (const auto& address : interface.addresses) {
      if (address.usable) wanted.insert(address.gid);
    }
    return wanted;
  }
  for (const auto& entry : snapshot.gids.entries().first(snapshot.gids.used_length())) {
    if (!entry.gid.is_zero()) wanted.insert(entry.gid);
  }
  return wanted;
}

Port::Change Port::follow(const Interface* interface, Status& refusal) {
  const auto* before = snapshot_.load(std::memory_order_relaxed);
  auto after = std::make_unique<PortSnapshot>(*before);
  const Interface gone{};
  const Interface& now = interface == nullptr ? gone : *interface;
  const bool gids_changed =
      configuration_ ? after->gids.set_infiniband(configuration_->gid()) : after->gids.follow(now);
  after->infiniband = configuration_;
  after->index = index_;
  after->present = interface != nullptr;
  if (interface != nullptr) interface_index_ = after->interface_index = interface->index;
  after->up = now.up;
  // Where it is gone, what is sent meanwhile finds the port down; nothing is too long because of that.
  if (interface != nullptr) after->interface_mtu = now.mtu;
  if (interface != nullptr) after->line_rate = interface_bits_per_second(now.name);
  const std::uint32_t headers = configuration_ ? kInfinibandHeaders : 0;
  after->mtu = wire::byte_count(wire::mtu_of_interface(after->interface_mtu - std::min(after->interface_mtu, headers)));
  if (interface != nullptr) {
    const std::lock_guard guard(mutex_);
    interface_name_ = now.name;
  }

  Change change;
  const std::set<Gid> wanted = wanted_addresses(now, *after);
  for (auto entry = udp_.begin(); entry != udp_.end();) {
    if (wanted.contains(entry->first)) {
      ++entry;
      continue;
    }
    for (auto& [group, through] : groups_) {
      if (through == entry->second.get()) through = nullptr;
    }
    change.retired.push_back(std::move(entry->second));
    entry = udp_.erase(entry);
    change.routes = true;
  }
  std::erase_if(refused_, [&wanted](const Gid& address) { return !wanted.contains(address); });
  for (const Gid& address : wanted) {
    if (use_udp_ && !udp_.contains(address)) change.routes |= open_udp(address, refusal);
  }
  rejoin_groups();
  followed_ = true;

  const PortSnapshot& current = *after;
  snapshot_.store(after.release(), std::memory_order_release);
  wait_for_readers();
  raise_changes(*before, current, gids_changed);
  delete before;
  return change;
}

void Port::raise_changes(const PortSnapshot& before, const PortSnapshot& after, bool gids_changed) {
  if (before.mtu != after.mtu) tell_mtu(after.mtu);
  if (gids_changed) raise(PortEvent::kGidChange);
  if (before.infiniband && after.infiniband) {
    const InfinibandPort& was = *before.infiniband;
    const InfinibandPort& is = *after.infiniband;
    if (was.lid != is.lid || was.lmc != is.lmc) raise(PortEvent::kLidChange);
    if (was.sm_lid != is.sm_lid || was.sm_sl != is.sm_sl) raise(PortEvent::kSmChange);
    if (was.pkeys != is.pkeys) raise(PortEvent::kPkeyChange);
  }
  if (before.up != after.up) raise(after.up ? PortEvent::kActive : PortEvent::kError);
}

bool Port::reopen() {
  bool opened = false;
  Status refusal;
  for (const Gid& address : std::set<Gid>(refused_)) opened |= open_udp(address, refusal);
  if (opened) rejoin_groups();
  return opened;
}

void Port::rejoin_groups() {
  for (auto& [group, through] : groups_) {
    if (through != nullptr) continue;
    through = udp_port_for_group(group);
    if (through != nullptr && !through->join(group)) through = nullptr;
  }
}

bool Port::open_udp(const Gid& address, Status& refusal) {
  transport::UdpOptions options{.address = address, .interface_index = interface_index_};
  if (configuration_) {
    options.port = wire::kInfinibandUdpPort;
    options.framing = transport::Framing::kInfiniband;
  }
  auto opened = transport::UdpPort::open(options, counters_);
  if (!opened) {
    // It is tried again and again; once is enough to say why.
    if (refused_.insert(address).second) {
      // Without descriptors the device does not open at all, and says so itself.
      const bool opens = followed_ || opened.error().code != ErrorCode::kExhausted;
      log(opens ? Severity::kWarning : Severity::kDebug,
          fmt::format("{}: {} Until then this address reaches only processes of this user on this host.", name(),
                      opened.error().message));
    }
    refusal = tl::make_unexpected(opened.error());
    return false;
  }
  if (refused_.erase(address) != 0) {
    log(Severity::kInfo, fmt::format("{}: the UDP port of {} is open now", name(), to_string(address)));
  }
  udp_.emplace(address, std::move(*opened));
  return true;
}

std::vector<transport::UdpPort*> Port::udp_ports() const {
  std::vector<transport::UdpPort*> ports;
  for (const auto& [address, port] : udp_) ports.push_back(port.get());
  return ports;
}

transport::UdpPort* Port::udp_port_for_group(const Gid& group) const {
  const auto found = std::find_if(udp_.begin(), udp_.end(), [&group](const auto& entry) {
    return entry.first.is_ipv4_mapped() == group.is_ipv4_mapped();
  });
  return found == udp_.end() ? nullptr : found->second.get();
}

// On InfiniBand a sender takes the family that it has: who has both must hear both.
std::vector<Gid> Port::carriers_of(const Gid& group) const {
  if (!configuration_) return {group};
  return {group, twin_of_carrier_group(group)};
}

Status Port::join(const Gid& group) {
  if (groups_.contains(group)) return {};
  bool hears = false;
  for (const Gid& carrier : carriers_of(group)) {
    auto* const through = udp_port_for_group(carrier);
    if (through != nullptr) {
      if (auto joined = through->join(carrier); !joined) {
        leave(group);
        return joined;
      }
    }
    hears |= through != nullptr;
    groups_.emplace(carrier, through);
  }
  if (!hears) {
    log(Severity::kWarning,
        fmt::format("{}: nothing will arrive for the group {}, since no UDP port is open", name(), to_string(group)));
  }
  return {};
}

void Port::leave(const Gid& group) {
  for (const Gid& carrier : carriers_of(group)) {
    const auto found = groups_.find(carrier);
    if (found == groups_.end()) continue;
    if (found->second != nullptr && !found->second->leave(carrier)) {
      log(Severity::kDebug, fmt::format("{}: leaving {} failed", name(), to_string(carrier)));
    }
    groups_.erase(found);
  }
}

void Port::raise(PortEvent event) {
  const std::lock_guard guard(mutex_);
  for (auto* listener : listeners_) listener->on_port_event(*this, event);
}

void Port::tell_mtu(std::uint32_t bytes) {
  const std::lock_guard guard(mutex_);
  for (auto* listener : listeners_) listener->on_mtu(*this, bytes);
}

void Port::attach(PortListener& listener) {
  const std::lock_guard guard(mutex_);
  listeners_.push_back(&listener);
}

void Port::detach(PortListener& listener) {
  const std::lock_guard guard(mutex_);
  std::erase(listeners_, &listener);
}

void Port::abandon() noexcept {
  claim_.reset();
  for (auto& [address, port] : udp_) port->abandon();
}

}  // namespace verbena::device
