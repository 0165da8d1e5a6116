#include "device/port.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "device/log.h"
#include "device/rcu.h"
#include "wire/mtu.h"

namespace verbena::device {

Port::Port(const Device& device, DeviceCounters counters, bool use_udp)
    : device_(device), counters_(std::move(counters)), use_udp_(use_udp), snapshot_(new PortSnapshot) {
  interface_name_ = device.interface_name();
}

Port::~Port() {
  delete snapshot_.load(std::memory_order_relaxed);
}

PortSnapshot Port::copy() const {
  const RcuReadSection section;
  return snapshot();
}

std::string Port::interface_name() const {
  const std::lock_guard guard(mutex_);
  return interface_name_;
}

Port::Change Port::follow(const Interface* interface, Status& refusal) {
  const auto* before = snapshot_.load(std::memory_order_relaxed);
  auto after = std::make_unique<PortSnapshot>(*before);
  const Interface gone{};
  const Interface& now = interface == nullptr ? gone : *interface;
  const bool gids_changed = after->gids.follow(now);
  after->present = interface != nullptr;
  after->up = now.up;
  after->interface_mtu = now.mtu;
  after->mtu = wire::byte_count(wire::mtu_of_interface(now.mtu));
  if (interface != nullptr) {
    const std::lock_guard guard(mutex_);
    interface_name_ = now.name;
  }

  Change change;
  for (auto entry = udp_.begin(); entry != udp_.end();) {
    if (after->gids.contains(entry->first)) {
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
  std::erase_if(refused_, [&after](const Gid& address) { return !after->gids.contains(address); });
  for (const auto& entry : after->gids.entries().first(after->gids.used_length())) {
    if (!entry.gid.is_zero() && use_udp_ && !udp_.contains(entry.gid)) change.routes |= open_udp(entry.gid, refusal);
  }
  rejoin_groups();
  followed_ = true;

  const bool was_up = before->up;
  const bool is_up = after->up;
  const auto mtu_before = before->mtu;
  const auto mtu_now = after->mtu;
  snapshot_.store(after.release(), std::memory_order_release);
  wait_for_readers();
  delete before;
  if (mtu_before != mtu_now) tell_mtu(mtu_now);
  if (gids_changed) raise(PortEvent::kGidChange);
  if (was_up != is_up) raise(is_up ? PortEvent::kActive : PortEvent::kError);
  return change;
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
  auto opened = transport::UdpPort::open({.address = address, .interface_index = device_.interface_index()}, counters_);
  if (!opened) {
    // It is tried again and again; once is enough to say why.
    if (refused_.insert(address).second) {
      // Without descriptors the device does not open at all, and says so itself.
      const bool opens = followed_ || opened.error().code != ErrorCode::kExhausted;
      log(opens ? Severity::kWarning : Severity::kDebug,
          fmt::format("{}: {} Until then this address reaches only processes of this user on this host.",
                      device_.name(), opened.error().message));
    }
    refusal = tl::make_unexpected(opened.error());
    return false;
  }
  if (refused_.erase(address) != 0) {
    log(Severity::kInfo, fmt::format("{}: UDP port 4791 of {} is open now", device_.name(), to_string(address)));
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

Status Port::join(const Gid& group) {
  if (groups_.contains(group)) return {};
  auto* through = udp_port_for_group(group);
  if (through != nullptr) {
    if (auto joined = through->join(group); !joined) return joined;
  } else {
    log(Severity::kWarning, fmt::format("{}: nothing will arrive for the group {}, since UDP port 4791 is not open",
                                        device_.name(), to_string(group)));
  }
  groups_.emplace(group, through);
  return {};
}

void Port::leave(const Gid& group) {
  const auto found = groups_.find(group);
  if (found == groups_.end()) return;
  if (found->second != nullptr && !found->second->leave(group)) {
    log(Severity::kDebug, fmt::format("{}: leaving {} failed", device_.name(), to_string(group)));
  }
  groups_.erase(found);
}

void Port::raise(PortEvent event) {
  const std::lock_guard guard(mutex_);
  for (auto* listener : listeners_) listener->on_port_event(event);
}

void Port::tell_mtu(std::uint32_t bytes) {
  const std::lock_guard guard(mutex_);
  for (auto* listener : listeners_) listener->on_mtu(bytes);
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
  for (auto& [address, port] : udp_) port->abandon();
}

}  // namespace verbena::device
