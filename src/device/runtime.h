// What all open devices of a process share: its slot on the host, the exchange with the other processes, the table of
// queue pairs, the present shape of the network, and the helper thread.
//
// Packets are taken in by whoever has time: a thread that polls an empty completion queue, or the helper (helper.h).
//
// Thread-safety: all calls from any thread unless they say otherwise.
// Ownership:     shared by the contexts; ends with the last.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/qpn.h"
#include "device/delayed_events.h"
#include "device/device_counters.h"
#include "device/file_watch.h"
#include "device/helper.h"
#include "device/inbound.h"
#include "device/injection.h"
#include "device/management.h"
#include "device/netlink.h"
#include "device/pending_senders.h"
#include "device/port.h"
#include "device/qp_table.h"
#include "device/raw_ports.h"
#include "device/router.h"
#include "device/routes.h"
#include "device/settings.h"
#include "device/srq_table.h"
#include "device/subnet_file.h"
#include "device/timers.h"
#include "engine/address_handle.h"
#include "engine/multicast_table.h"
#include "transport/datagram.h"
#include "transport/impair/impair.h"
#include "transport/shm/counter_memory.h"
#include "transport/shm/exchange.h"
#include "transport/spin_lock.h"
#include "transport/tap/tap.h"
#include "verbena/result.h"

namespace verbena::device {

class CompletionQueue;
class QueuePair;

class Runtime final : private HelperWork, private transport::Sender {
 public:
  // The runtime of this process, made where there is none. A child of fork has none of its parent's.
  static Result<std::shared_ptr<Runtime>> acquire();
  ~Runtime() override;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // False in a child of the process that made it; then nothing but destruction is allowed.
  bool alive() const noexcept { return alive_.load(std::memory_order_relaxed); }

  // The ports of `device`, port 1 first, opened at the first call. Where UDP 4791 of an address belongs to somebody
  // else its port opens without it (Port::lacks_udp). kExhausted where descriptors have run out.
  Result<std::vector<Port*>> open_ports(const Device& device);

  const Settings& settings() const noexcept { return settings_; }
  Injection& injection() noexcept { return injection_; }
  // Of raw packet queue pairs.
  RawPorts& raw_ports() noexcept { return raw_ports_; }

  // --- queue pairs
  QpTable& queue_pairs() noexcept { return queue_pairs_; }
  SrqTable& shared_receive_queues() noexcept { return shared_receive_queues_; }
  // As QpTable::reserve, claiming one more slot where all are full.
  Result<Qpn> reserve_qpn();
  Status attach(const Gid& group, std::uint16_t lid, QueuePair& queue_pair);
  Status detach(const Gid& group, std::uint16_t lid, QueuePair& queue_pair);
  bool is_attached(Qpn qpn) const;
  // `queue_pair` is on another port now: its groups arrive there.
  void follow_port(QueuePair& queue_pair);

  // --- the data path
  // Requires: an RCU read section.
  transport::SendResult send(std::span<const transport::Outgoing> batch, Instant now) noexcept override;
  // `queue_pair` has sends that could not go out yet.
  void add_pending(QueuePair& queue_pair) noexcept;
  void remove_pending(QueuePair& queue_pair) noexcept { pending_.remove(queue_pair); }
  // `queue_pair` wants its on_timer() called at `at` or before.
  void arm_timer(QueuePair& queue_pair, Instant at) noexcept;
  void remove_timer(QueuePair& queue_pair) noexcept { timers_.remove(queue_pair); }
  // As Exchange::nudge().
  void nudge(Slot slot) noexcept {
    if (slot != Slot{}) exchange_->nudge(slot);
  }
  // Whether packets of `port` to `address` go through shared memory. Requires: an RCU read section.
  bool is_on_this_host(const Port& port, const engine::AddressVector& address) const noexcept;
  // A poll found its completion queue empty: takes in what has arrived, about `budget` packets, unless another thread
  // is at it.
  void on_empty_poll(std::size_t budget) noexcept;
  // A completion queue was armed: the application may sleep now.
  void on_arm() noexcept { helper_.on_arm(); }

  // --- rare matters
  // A management datagram for QP 1 of another port, by the shortest way. Where nobody on this host has what it is for,
  // the answer to that. Any thread, outside of RCU read sections.
  std::optional<host::ManagementMessage> send_management(const host::ManagementMessage& message) noexcept;
  // `queue` has an event that waits until `due`.
  void delay_event(CompletionQueue& queue, Instant due) noexcept;
  // The helper thread takes the queue pairs on `queue`, which was overrun, to the error state.
  void report_overrun(CompletionQueue& queue) noexcept;
  void forget(CompletionQueue& queue) noexcept;

 private:
  // How packets come in from UDP: a port of UDP and whom it serves.
  struct Inlet {
    transport::UdpPort* udp_port;
    PortReceiver* receiver;
  };
  using Inlets = std::vector<Inlet>;

  explicit Runtime(const Settings& settings);
  Status start();
  void abandon() noexcept;
  static void before_fork() noexcept;
  static void after_fork_in_parent() noexcept;
  static void after_fork_in_child() noexcept;

  void serve_control() noexcept override;
  bool arm_doorbells() noexcept override;
  bool held_back() noexcept override { return held_back_; }
  void disarm_doorbells() noexcept override;
  bool take_in() noexcept override;
  Duration tick() noexcept override;
  void relieve() noexcept override;
  std::optional<Instant> next_timeout() noexcept override;

  // Requires: receiving_
  std::size_t receive(std::size_t budget, bool all_inlets, bool patient) noexcept;
  bool note_left_over(std::size_t received, std::size_t budget) noexcept;  // Requires: receiving_
  void run_timers(bool more_to_receive) noexcept;
  Status follow_network();                                                               // Requires: control_
  const Interface* interface_of(const Port& port) const;                                 // Requires: control_
  bool is_of_unopened(const Interface& interface, const Port& port) const;               // Requires: control_
  Status follow(Port& port);                                                             // Requires: control_
  Status follow(Port& port, const Interface* interface);                                 // Requires: control_
  Status open_port(const Device& device, std::uint8_t number, DeviceCounters counters);  // Requires: control_
  void drop_last_port();                                                                 // Requires: control_
  void reopen_ports();    // Requires: control_; what others held
  void publish_routes();  // Requires: control_
  void fail_overrun_queues() noexcept;
  // How a queue pair's packets of a group come in.
  struct Membership {
    Port* port = nullptr;
    Gid joined;  // the group; of InfiniBand that of the carrier
  };
  Status change_groups(const Gid& group, std::uint16_t lid, QueuePair& queue_pair, bool attach);
  static Membership membership_of(QueuePair& queue_pair, const Gid& group, std::uint16_t lid);  // Requires: control_
  Status join(const Membership& membership);                                                    // Requires: control_
  void leave(const Membership& membership);                                                     // Requires: control_
  // Of an InfiniBand port. Requires: control_
  Result<InfinibandPort> wanted_configuration(const Port& port, const SubnetFile& subnet) const;
  Status configure(Port& port, const SubnetFile& subnet);     // Requires: control_
  bool configure_ports(const SubnetFile& subnet, bool tell);  // Requires: control_
  void follow_subnet();                                       // Requires: control_
  void follow_configuration();                                // Requires: control_
  void try_again_later() noexcept;

  const Settings settings_;
  Injection injection_;
  std::atomic<bool> alive_{true};  // relaxed: changes only in a child, before any of its code runs

  std::unique_ptr<transport::CounterMemory> counter_memory_;
  DeviceCounters host_counters_;  // of what belongs to no device
  std::unique_ptr<transport::Exchange> exchange_;
  std::unique_ptr<transport::Tap> tap_;
  std::unique_ptr<Router> router_;
  std::unique_ptr<transport::Impair> impair_;
  Management management_{*this};
  std::unique_ptr<Inbound> inbound_;
  QpTable queue_pairs_;
  SrqTable shared_receive_queues_;  // of XRC
  PendingSenders pending_;
  Timers timers_;
  DelayedEvents delayed_events_;

  // Published by release under control_, read by acquire inside RCU read sections.
  std::atomic<const Routes*> routes_{new Routes};
  std::atomic<const Inlets*> inlets_{new Inlets};
  std::atomic<const engine::MulticastTable*> groups_{new engine::MulticastTable};

  mutable std::mutex control_;
  std::unique_ptr<Netlink> netlink_;
  Network network_;
  SubnetFile subnet_;
  std::unique_ptr<FileWatch> subnet_watch_;  // nullptr: there is no file
  std::vector<std::pair<std::unique_ptr<Port>, std::unique_ptr<PortReceiver>>> ports_;
  std::map<std::pair<Port*, Gid>, unsigned> group_users_;            // how many queue pairs of a port are in a group
  std::map<std::pair<std::uint32_t, Gid>, Membership> memberships_;  // by QPN and group

  // Receiving: one thread at a time.
  transport::SpinLock receiving_;
  unsigned polls_to_udp_ = 0;          // empty polls until UDP is looked at again
  std::atomic<unsigned> udp_heat_{0};  // above 0: UDP brought something lately; look every time. Relaxed: a hint
  std::size_t taken_in_ = 0;           // since there was last nothing more; guarded by receiving_
  bool held_back_ = false;             // the helper left packets where they were, for want of receives

  // When UDP ports and LIDs that others hold are tried again, in nanoseconds; 0: none is missing. Relaxed: a hint.
  std::atomic<std::int64_t> reopen_at_{0};

  std::mutex failing_mutex_;               // held while queue pairs are failed; never under a queue pair's lock
  std::mutex overrun_mutex_;               // innermost
  std::vector<CompletionQueue*> overrun_;  // guarded by overrun_mutex_

  RawPorts raw_ports_{control_, helper_, queue_pairs_};
  Helper helper_{*this};
};

}  // namespace verbena::device
