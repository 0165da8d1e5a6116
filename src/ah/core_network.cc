// What the network says, and which addresses it concerns.
//
//   neighbour  those that leave by this next hop, where the device was told another MAC address. The kernel repeats
//              what is known whenever it verifies it: such a notice touches nothing.
//   route      those whose destination lies in the prefix: resolved anew, made anew where the choice differs
//   address    those of its family that leave by the interface, likewise; where it is removed, those that it is the
//              source of are no longer found from that moment on, and others take their place
//   link       those that leave by the interface, likewise; all of them where its own MAC address has changed
//   lost       all, likewise, with a look at each next hop
//
// Addresses and links of other interfaces than the port's come and go with every container of the host, and touch
// nothing here. But the device may have a GID of one of them now, as of a VLAN that was made on its port, and the event
// in which it says so may be lost: its table is read in the background, once for many such notices, and only a table
// that has changed puts anything in doubt.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ah/core.h"

namespace verbena::ah {

namespace {

// Between two looks at the table because of other interfaces than the port's, however many come and go.
constexpr std::int64_t kBetweenLooks_ns = 1'000'000'000;

// Nothing where there is no such interface in this network namespace.
std::optional<MacAddress> own_mac(std::uint32_t netdev) {
  ifreq request{};
  if (::if_indextoname(netdev, request.ifr_name) == nullptr) return std::nullopt;
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return std::nullopt;
  const int code = ::ioctl(socket, SIOCGIFHWADDR, &request);
  ::close(socket);
  if (code != 0 || request.ifr_hwaddr.sa_family != ARPHRD_ETHER) return std::nullopt;
  MacAddress mac;
  std::memcpy(mac.data(), request.ifr_hwaddr.sa_data, mac.size());
  return mac;
}

bool is_same_family(const Gid& a, const Gid& b) {
  return a.is_ipv4_mapped() == b.is_ipv4_mapped();
}

bool may_leave_by(const Entry& entry, std::uint32_t netdev) {
  return netdev == 0 || entry.path->source.netdev == 0 || entry.path->source.netdev == netdev;
}

}  // namespace

void Core::on_network_change(const NetworkChange& change) {
  using Kind = NetworkChange::Kind;
  const bool table_concerned = change.kind != Kind::kNeighbour && change.kind != Kind::kRoute;
  const Lock lock(mutex_);
  if (closed_ || device_gone_) return;
  if (change.kind == Kind::kLink && change.removed) link_macs_.erase(change.netdev);
  if (table_concerned && !is_of_port(change.netdev)) return look_later();
  if (table_concerned) gids_.invalidate();
  // What is being resolved or made is looked at again afterwards. A neighbour is noted in the entry itself: making an
  // address is what neighbours are asked for.
  if (change.kind != Kind::kNeighbour) ++epoch_.any;
  switch (change.kind) {
    case Kind::kNeighbour:
      return on_neighbour(change);
    case Kind::kRoute:
      return on_route(change);
    case Kind::kAddress:
      return on_address(change);
    case Kind::kLink:
      return on_link(change);
    case Kind::kLost:
      return on_notices_lost();
  }
}

void Core::on_neighbour(const NetworkChange& change) {
  const std::uint32_t tag = change.address ? hop_tag(*change.address) : 0;
  for (std::size_t slot = 0; slot < hop_tags_.size(); ++slot) {
    if (hop_tags_[slot] == 0 || (tag != 0 && hop_tags_[slot] != tag)) continue;
    Entry& entry = *by_slot_[slot];
    if (!change.address || hop_of(entry).address == *change.address) on_neighbour(entry, change);
  }
  if (!change.mac) return;
  forgive_failed([&](const Binding& binding) {
    return !change.address || binding.trouble->next_hop == *change.address ||
           destination_of(binding.key).gid == *change.address;
  });
}

void Core::on_neighbour(Entry& entry, const NetworkChange& change) {
  const std::uint32_t netdev = entry.path->netdev;
  if (change.netdev != 0 && netdev != 0 && change.netdev != netdev) {
    // It shows up elsewhere: the route decides whether it has moved.
    if (change.mac && entry.state == EntryState::kReady) recheck(entry, AhCause::kNeighbour);
    return;
  }
  if (entry.state == EntryState::kCreating) {
    if (!change.mac) {  // the creation itself will tell
      entry.neighbour_failed = true;
      return;
    }
    if (entry.mac() != change.mac || entry.neighbour_failed) outdate_attempt_of(entry);
    entry.neighbour_failed = false;
    entry.mac_moved = entry.mac_moved || (entry.mac() && entry.mac() != change.mac);
    entry.set_mac(change.mac);
    entry.mac_known = true;
    return;
  }
  if (entry.state != EntryState::kReady) return;
  if (entry.stale) {
    if (change.mac) recheck(entry, AhCause::kNeighbour);  // its replacement may find an answer now
    return;
  }
  if (entry.mac_known && entry.mac() == change.mac) return;
  if (entry.mac_known && !entry.mac()) {  // see on_created()
    entry.set_mac(change.mac);
    return;
  }
  if (change.removed && !change.mac && change.address) {
    expect_no_notice(entry);
    return;
  }
  refresh(entry, AhCause::kNeighbour);
}

// Its next hop has answered: a refusal that comes now is of the time before.
void Core::outdate_attempt_of(Entry& entry) {
  entry.first_binding->attempt->outdated = true;
  const auto waiting = waiters_.find(&entry);
  if (waiting == waiters_.end()) return;
  for (Binding* binding : waiting->second) binding->attempt->outdated = true;
}

// The kernel does not watch it any more.
void Core::expect_no_notice(Entry& entry) {
  entry.neighbour_forgotten = true;
  entry.aged = false;
  next_due_ns_ = std::min(next_due_ns_, due_ns_of(entry));
  poke_keeper();
}

void Core::on_route(const NetworkChange& change) {
  for (Entry* entry : by_slot_) {
    if (entry == nullptr || entry->state != EntryState::kReady) continue;
    const Gid destination = asked(*entry).gid;
    if (!destination.is_zero() && change.concerns(destination)) recheck(*entry, AhCause::kRoute);
  }
  const auto concerned = [&](const Binding& binding) { return change.concerns(destination_of(binding.key).gid); };
  outdate_attempts(concerned);
  forgive_failed(concerned);
}

void Core::on_address(const NetworkChange& change) {
  const bool was_removed =
      0 != std::erase_if(removed_, [&](const Removed& one) {
        return one.address == change.address && (change.netdev == 0 || one.netdev == change.netdev);
      });
  if (change.removed && change.address) {
    removed_.push_back({*change.address, change.netdev, now_ns() + options_.device_lag.count()});
  }
  outdate_attempts(each_binding);
  // The kernel tells of an address again whenever its lifetime is extended: that alone is no news to what failed.
  const Revalidate what = was_removed && !change.removed ? Revalidate::kFailures : Revalidate::kEntries;
  queue_revalidate(what);
  // By then one that was removed may serve again, where the device has it still.
  revalidate_later(change.removed ? Revalidate::kFailures : what);
  for (Entry* entry : by_slot_) {
    if (entry == nullptr || entry->state != EntryState::kReady || !may_leave_by(*entry, change.netdev)) continue;
    if (is_among(removed_, entry->path->source)) {
      let_go(*entry, AhCause::kAddress);
    } else if (!change.address || is_same_family(*change.address, entry->path->source.gid)) {
      recheck(*entry, AhCause::kAddress);
    }
  }
}

bool Core::is_among(const std::vector<Removed>& removed, const GidEntry& source) {
  return std::any_of(removed.begin(), removed.end(), [&](const Removed& one) {
    return one.address == source.gid && (one.netdev == 0 || source.netdev == 0 || one.netdev == source.netdev);
  });
}

// Where the device tells no interface, or has no GID now, any may be.
bool Core::is_of_port(std::uint32_t netdev) const {
  if (netdev == 0 || port_netdevs_.empty()) return true;
  const auto is_it = [netdev](std::uint32_t one) { return one == 0 || one == netdev; };
  if (std::any_of(port_netdevs_.begin(), port_netdevs_.end(), is_it)) return true;
  return std::any_of(by_slot_.begin(), by_slot_.end(), [this, netdev](const Entry* entry) {
    return entry != nullptr && entry->state != EntryState::kRetired &&
           (hop_of(*entry).netdev == netdev || may_leave_by(*entry, netdev));
  });
}

// Kept of those that entries leave by, and no others.
bool Core::is_own_link_new(std::uint32_t netdev, const MacAddress& mac) {
  const bool used = std::any_of(by_slot_.begin(), by_slot_.end(), [this, netdev](const Entry* entry) {
    return entry != nullptr && entry->state != EntryState::kRetired && hop_of(*entry).netdev == netdev;
  });
  if (!used) {
    link_macs_.erase(netdev);
    return false;
  }
  const auto [at, first] = link_macs_.try_emplace(netdev, mac);
  return !first && std::exchange(at->second, mac) != mac;
}

void Core::on_link(const NetworkChange& change) {
  const bool other_mac = change.netdev != 0 && change.mac && is_own_link_new(change.netdev, *change.mac);
  outdate_attempts(each_binding);
  queue_revalidate(Revalidate::kFailures);
  revalidate_later(Revalidate::kFailures);
  for (Entry* entry : by_slot_) {
    if (entry == nullptr || entry->state != EntryState::kReady || !may_leave_by(*entry, change.netdev)) continue;
    if (other_mac) {
      refresh(*entry, AhCause::kLink);
    } else {
      recheck(*entry, AhCause::kLink);
    }
  }
}

// The device learns of addresses from the same kernel, maybe later than this host does, and the event in which it says
// so may be lost: its table is looked at once more.
void Core::revalidate_later(Revalidate what) {
  revalidate_failures_later_ = revalidate_failures_later_ || what == Revalidate::kFailures;
  next_revalidate_ns_ = now_ns() + options_.device_lag.count();
  poke_keeper();
}

void Core::look_later() {
  other_heard_ns_ = now_ns();
  if (next_look_ns_ != kNever) return;
  next_look_ns_ = other_heard_ns_ + options_.device_lag.count();
  poke_keeper();
}

// Requires: mutex_. What was heard last may reach the device after this look: there is another.
void Core::queue_look(std::int64_t now) {
  const bool settled = other_heard_ns_ + options_.device_lag.count() <= now;
  next_look_ns_ = settled ? kNever : now + kBetweenLooks_ns;
  gids_.invalidate();
  pool_.submit(Lane::kUrgent, [this] { look_at_table(); });
}

// Where neighbours cannot be asked, nothing tells what is still right.
void Core::on_notices_lost() {
  if (!options_.neighbours) doubt_each(AhCause::kNoticesLost);
  outdate_attempts(each_binding);
  queue_revalidate(Revalidate::kFailures);
  pool_.submit(Lane::kUrgent, [this] { recheck_links(); });
  if (!options_.neighbours) return;
  for (Entry* entry : by_slot_) {
    if (entry != nullptr && entry->state == EntryState::kReady) recheck(*entry, AhCause::kNoticesLost);
  }
}

// Run by the pool, without mutex_: this host's own MAC addresses, asked for.
void Core::recheck_links() {
  std::vector<std::uint32_t> netdevs;
  {
    const Lock lock(mutex_);
    for (const auto& [netdev, mac] : link_macs_) netdevs.push_back(netdev);
  }
  for (const std::uint32_t netdev : netdevs) {
    const std::optional<MacAddress> mac = own_mac(netdev);
    if (mac) on_network_change({.kind = NetworkChange::Kind::kLink, .netdev = netdev, .mac = mac});
  }
}

// So that the first notice of a link can be compared with something. What it is known to be.
std::optional<MacAddress> Core::learn_link(std::uint32_t netdev) {
  if (netdev == 0) return std::nullopt;
  {
    const Lock lock(mutex_);
    if (const auto known = link_macs_.find(netdev); known != link_macs_.end()) return known->second;
  }
  const std::optional<MacAddress> mac = own_mac(netdev);
  if (!mac) return std::nullopt;
  const Lock lock(mutex_);
  return link_macs_.try_emplace(netdev, *mac).first->second;
}

}  // namespace verbena::ah
