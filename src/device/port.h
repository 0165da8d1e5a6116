// A port of a device in this process: its GID table, its state, and the UDP ports of its addresses. It follows
// the interface, and tells the contexts on it what changed.
//
// Thread-safety: snapshot() inside an RCU read section, copy() anywhere. follow() and the multicast calls: under the
//                runtime's control lock. The event calls: any thread.
// Ownership:     owns its UDP ports; those of addresses that went are freed after a grace period.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "device/device.h"
#include "device/device_counters.h"
#include "device/gid_table.h"
#include "device/infiniband_port.h"
#include "device/lid_claim.h"
#include "device/routes.h"
#include "engine/port_view.h"
#include "transport/datagram.h"
#include "transport/udp/udp_port.h"
#include "verbena/result.h"

namespace verbena::device {

// The numbers of enum ibv_event_type that a port can raise.
enum class PortEvent : std::uint32_t {
  kActive = 9,
  kError = 10,
  kLidChange = 11,
  kPkeyChange = 12,
  kSmChange = 13,
  kGidChange = 18,
};

class Port;

// Who wants to hear of what happens to a port.
//
// Thread-safety: called with the port's lock held; must not call the port.
class PortListener {
 public:
  virtual void on_port_event(const Port& port, PortEvent event) noexcept = 0;
  virtual void on_mtu(const Port& port, std::uint32_t bytes) noexcept = 0;

 protected:
  ~PortListener() = default;
};

struct PortSnapshot {
  std::uint8_t number = kFirstPort;
  std::uint8_t count = 1;  // of the device's ports
  bool up = false;
  bool present = true;              // the interface exists
  unsigned interface_index = 0;     // as it is now; that of the last one where there is none
  std::uint32_t interface_mtu = 0;  // bytes; that of the last one where there is none, 0 before the first
  std::uint32_t mtu = 256;          // bytes of payload a packet
  std::uint64_t line_rate = 0;      // bits a second
  std::uint16_t index = 0;          // among the ports of the process
  GidTable gids;
  std::optional<InfinibandPort> infiniband;  // nothing for Ethernet

  engine::PortView view() const noexcept;
};

class Port {
 public:
  // Requires: the device has a port of this number.
  Port(const Device& device, std::uint8_t number, DeviceCounters counters, bool use_udp);
  // Before the first follow(), and whenever the subnet's configuration changed: an InfiniBand port takes over what it
  // says of it at the next follow(). kBusy where another port of this network namespace has one of its LIDs: then it
  // stays as it was, and lacks_lids() where its own are given up.
  Status configure(const InfinibandPort& configuration);
  // Gives up the claim on its LIDs where `next` has others, so that they are free for a port that gets them. Ports that
  // change together all do this before the first of them is configured. Its packets keep the LIDs until it is.
  void give_up_lids(const InfinibandPort& next) noexcept;
  // Whether it waits for LIDs: nobody tells when another process gives them up.
  bool lacks_lids() const noexcept { return configuration_ && claim_ == nullptr; }
  // Nothing for Ethernet.
  const std::optional<InfinibandPort>& configuration() const noexcept { return configuration_; }
  // Which of the ports of the process it is. To be called before the first follow().
  void set_index(std::uint16_t index) noexcept { index_ = index; }
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  const Device& device() const noexcept { return device_; }
  std::uint8_t number() const noexcept { return number_; }
  // As it was declared.
  const DevicePort& identity() const noexcept { return device_.port(number_); }
  std::string name() const { return device_.port_name(number_); }
  bool is_infiniband() const noexcept { return identity().infiniband.has_value(); }
  // Those of the device.
  DeviceCounters& counters() noexcept { return counters_; }

  // Acquire: partner of the release store in follow(). Requires: an RCU read section around all use.
  const PortSnapshot& snapshot() const noexcept { return *snapshot_.load(std::memory_order_acquire); }
  PortSnapshot copy() const;
  // The name of the interface now; it may have been renamed.
  std::string interface_name() const;
  // The interface that it is on: the one it was on, whatever its name, and where that is gone, one that came under its
  // last name or the declared one. nullptr: there is none.
  const Interface* find_in(const Network& network) const;
  // That of the interface it is on, or was last. Under the runtime's control lock.
  unsigned interface_index() const noexcept { return interface_index_; }

  struct Change {
    bool routes = false;                                       // UDP ports came or went
    std::vector<std::unique_ptr<transport::UdpPort>> retired;  // to be freed after a grace period
  };
  // Takes over what the interface is now; nullptr where it is gone, and once before another one takes its place.
  // Raises events. Where an address cannot be opened,
  // `refusal` says why (the last one); the port does without it, and reopen() tries again.
  Change follow(const Interface* interface, Status& refusal);
  // Whether an address is there whose UDP port could not be opened.
  bool lacks_udp() const noexcept { return !refused_.empty(); }
  // Tries those again, since nobody tells when another process lets go of a port. True where one was opened.
  bool reopen();

  std::vector<transport::UdpPort*> udp_ports() const;
  // Requires: an InfiniBand port.
  LidRoute lid_route() const;

  // A group that at least one queue pair here is attached to; of InfiniBand, its carrier's group of either family: it
  // is joined in each family that has an address now or later.
  Status join(const Gid& group);
  void leave(const Gid& group);

  void attach(PortListener& listener);
  void detach(PortListener& listener);  // none is called when this returns

  void abandon() noexcept;  // in the child of a fork

 private:
  void raise(PortEvent event);
  void raise_changes(const PortSnapshot& before, const PortSnapshot& after, bool gids_changed);
  std::set<Gid> wanted_addresses(const Interface& interface, const PortSnapshot& snapshot) const;
  void tell_mtu(std::uint32_t bytes);
  bool open_udp(const Gid& address, Status& refusal);
  void rejoin_groups();
  transport::UdpPort* udp_port_for_group(const Gid& group) const;
  std::vector<Gid> carriers_of(const Gid& group) const;

  const Device& device_;
  const std::uint8_t number_;
  DeviceCounters counters_;
  const bool use_udp_;
  std::atomic<const PortSnapshot*> snapshot_;

  std::uint16_t index_ = 0;

  // Control lock of the runtime.
  unsigned interface_index_;
  std::map<Gid, std::unique_ptr<transport::UdpPort>> udp_;
  std::optional<InfinibandPort> configuration_;
  std::unique_ptr<LidClaim> claim_;
  bool followed_ = false;                      // once at least
  std::set<Gid> refused_;                      // addresses of now that could not be opened; the log has told of them
  std::map<Gid, transport::UdpPort*> groups_;  // joined, through which port; nullptr: through none at present

  mutable std::mutex mutex_;
  std::vector<PortListener*> listeners_;  // guarded by mutex_
  std::string interface_name_;            // guarded by mutex_
};

}  // namespace verbena::device
