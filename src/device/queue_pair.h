// A queue pair of a context: the engine's machine, with a lock a side, its place in the table, and its way out.
//
// Locks, in this order: send side, receive side, completion queue, timers or pending senders (which only try the
// sides). Two threads that send on one queue pair and receive on it meet in none.
//
// Thread-safety: all calls from any thread; destruction needs that nobody else uses it.
// Ownership:     keeps the context alive; domain, completion queues and shared receive queue must outlive it. An XRC
//                receive queue pair keeps its XRC domain, and is shared by those who made and opened it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "device/completion_queue.h"
#include "device/event_listeners.h"
#include "device/protection_domain.h"
#include "device/raw_ports.h"
#include "device/shared_receive_queue.h"
#include "device/timers.h"
#include "device/xrc_domain.h"
#include "engine/queue_pair.h"
#include "transport/spin_lock.h"

namespace verbena::device {

using engine::QpAttributes;
using engine::QpCapabilities;
using engine::QpState;
using engine::QpType;
using engine::SendRequest;

struct QpInit {
  QpType type = QpType::kUd;
  CompletionQueue* send_queue = nullptr;
  CompletionQueue* receive_queue = nullptr;
  SharedReceiveQueue* shared_receives = nullptr;
  QpCapabilities capabilities;
  bool signal_all = false;
  std::uint64_t element = 0;  // names it in events
};

// What a raw packet queue pair is told of a port that it cannot be on.
tl::unexpected<Error> without_frames(const Port& port);

class QueuePair final : private engine::TransportObserver {
 public:
  // Errors: EINVAL for capabilities above the limits, missing completion queues, or a type that is not of a protection
  // domain; EOPNOTSUPP for one that is not there; ENOMEM at a limit.
  static Result<std::unique_ptr<QueuePair>> create(ProtectionDomain& domain, const QpInit& init);
  // An XRC receive queue pair, of which the domain knows as long as somebody has it.
  static Result<std::shared_ptr<QueuePair>> create_xrc_receive(const std::shared_ptr<XrcDomain>& domain, Context& maker,
                                                               std::uint64_t element);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  Context& context() noexcept { return *context_; }
  // The port of its last INIT; port 1 before the first. Relaxed: a port lives as long as its contexts.
  Port& port() noexcept { return *port_.load(std::memory_order_relaxed); }
  Qpn qpn() const noexcept { return engine_.qpn(); }
  QpType type() const noexcept { return engine_.type(); }
  std::uint32_t handle() const noexcept { return handle_; }
  QpState state() const noexcept { return engine_.state(); }
  const QpCapabilities& capabilities() const noexcept { return engine_.capabilities(); }
  bool signal_all() const noexcept { return signal_all_; }

  // EINVAL for what the state table or the port refuses, EPERM for a privileged Q_Key without the right to it;
  // EOPNOTSUPP for raw packets on a port without Ethernet frames.
  Status modify(const QpAttributes& attributes, engine::AttrMask mask);
  QpAttributes query() noexcept;

  // EBUSY while attached to a multicast group, or while it has flows: then it must not be destroyed.
  bool in_use() const {
    return context_->runtime().is_attached(qpn()) || context_->runtime().raw_ports().has_flow_of(qpn());
  }
  // `lid` counts on an InfiniBand port alone. EINVAL where it is none of multicast there, or `group` is none.
  Status attach(const Gid& group, std::uint16_t lid) { return context_->runtime().attach(group, lid, *this); }
  Status detach(const Gid& group, std::uint16_t lid) { return context_->runtime().detach(group, lid, *this); }

  // Posts a list of sends under one lock and lets them go at the end.
  class SendBatch {
   public:
    explicit SendBatch(QueuePair& queue_pair) noexcept : queue_pair_(queue_pair), guard_(queue_pair.send_lock_) {}
    ~SendBatch() { queue_pair_.finish_posting(); }
    SendBatch(const SendBatch&) = delete;
    SendBatch& operator=(const SendBatch&) = delete;
    // 0, or an errno as engine::QueuePair::post_send; ENODEV in a child of fork.
    int post(const SendRequest& request) noexcept {
      if (!queue_pair_.context_->alive()) return Context::refuse_child();
      return queue_pair_.engine_.post_send(request);
    }
    // What post() would answer if there were room, and how many there is room for.
    int check(const SendRequest& request) const noexcept { return queue_pair_.engine_.check_send(request); }
    std::size_t room() const noexcept { return queue_pair_.engine_.send_room(); }

   private:
    QueuePair& queue_pair_;
    std::lock_guard<transport::SpinLock> guard_;
  };

  // The same for receives.
  class ReceiveBatch {
   public:
    explicit ReceiveBatch(QueuePair& queue_pair) noexcept : queue_pair_(queue_pair), guard_(queue_pair.receive_lock_) {}
    ReceiveBatch(const ReceiveBatch&) = delete;
    ReceiveBatch& operator=(const ReceiveBatch&) = delete;
    int post(std::uint64_t wr_id, std::span<const Sge> sges) noexcept {
      if (!queue_pair_.context_->alive()) return Context::refuse_child();
      return queue_pair_.engine_.post_receive(wr_id, sges);
    }

   private:
    QueuePair& queue_pair_;
    std::lock_guard<transport::SpinLock> guard_;
  };

  // Whoever opens an XRC receive queue pair hears of its events too, by a name of its own. Throws std::bad_alloc.
  void add_listener(Context& context, std::uint64_t element) { listeners_.add(context, element); }
  // Whether somebody has it by another context, which is open.
  bool serves_others(const Context& context) const noexcept { return listeners_.has_other(context); }
  // For each name, before it means something else.
  void remove_listener(std::uint64_t element) noexcept { listeners_.remove(element); }

  // --- for the other parts of this room
  // Of raw packets: whether it can send and receive there. Requires: a port of its device.
  bool has_frames_on(const Port& port) const noexcept { return !raw_[port.number() - kFirstPort].empty(); }
  bool is_connected() const noexcept { return engine_.is_connected(); }
  // A packet for it. Requires: an RCU read section.
  Drop receive(const wire::Packet& packet, const Envelope& envelope, std::size_t udp_payload_size) noexcept;
  // A frame for it. Requires: an RCU read section; a raw packet queue pair.
  Drop receive_frame(std::span<const std::byte> frame) noexcept;
  // The same for a connection. What is to be said or sent then waits for follow_up().
  Drop receive_connected(const wire::Packet& packet, const Envelope& envelope, std::size_t udp_payload_size,
                         Instant now) noexcept;
  // After a batch of receive_connected(): answers, and sends what the answers allow.
  void follow_up(Instant now) noexcept;
  // The link of a list of those to follow up; the receiving thread's.
  struct FollowUp {
    QueuePair* next = nullptr;
    bool listed = false;
  };
  FollowUp& to_follow_up() noexcept { return to_follow_up_; }
  // The time it asked to be called at has come. Requires: an RCU read section.
  void on_timer(Instant now) noexcept;
  TimerMark& timer_mark() noexcept { return timer_mark_; }
  // It waits for an answer: the process at the other end should look.
  void nudge_peer() noexcept { context_->runtime().nudge(peer_slot_.load(std::memory_order_relaxed)); }
  // Whether a packet that found no receive should wait; not for long since the first that found none. `patient`: the
  // helper thread took it in.
  bool would_rather_wait(Instant now, bool patient) noexcept;
  // Sends what waits, if the send side is free. True where nothing waits any more. Requires: an RCU read section.
  bool retry_send(Instant now) noexcept;
  // When the pace of a path or an address handle lets the next packet go; nothing where one waits for room, or is being
  // sent on.
  std::optional<Instant> send_due(Instant now) noexcept;
  // As the engine's.
  std::size_t forget_address(const engine::AddressHandle& handle) noexcept;
  void fail() noexcept;
  // Ignored where it is on another port.
  void set_mtu(const Port& port, std::uint32_t bytes) noexcept;
  // Nothing arrives for it from here on.
  void disconnect() noexcept;

 private:
  void disconnect_from_time() noexcept;
  // What it belongs to: a protection domain, or an XRC domain and nothing else.
  struct Place {
    Context& context;
    Context& maker;  // who hears of its events first
    ProtectionDomain* domain = nullptr;
    std::shared_ptr<XrcDomain> xrc_domain;
  };
  static Result<std::unique_ptr<QueuePair>> make(const Place& place, const QpInit& init);
  QueuePair(const Place& place, const QpInit& init, Qpn qpn, std::vector<RawUse> raw);
  engine::QpConfig config_of(const QpInit& init, Qpn qpn) noexcept;
  void finish_posting() noexcept;
  void transmit(Instant now) noexcept;  // Requires: send_lock_, an RCU read section
  void respond(Instant now) noexcept;   // Requires: receive_lock_, an RCU read section
  template <class Poll, class Done, class Rewind>
  void put_out(Instant now, Poll poll, Done done, Rewind rewind) noexcept;
  Drop receive_cnp(const wire::Packet& packet, const Envelope& envelope, Instant now) noexcept;
  void count_received(std::size_t udp_payload_size) noexcept;
  transport::SendResult put_on_network(std::span<const transport::Outgoing> batch, Instant at) noexcept;
  Drop conclude(Drop drop) noexcept;
  void settle_receives() noexcept;                          // Requires: send_lock_
  void meet_peer(const QpAttributes& attributes) noexcept;  // Requires: both locks, an RCU read section
  void arm_timer() noexcept;                                // Requires: send_lock_
  void on_transport_event(engine::TransportEvent event) noexcept override;
  void tell_events() noexcept;
  Result<Port*> port_for(const QpAttributes& attributes, engine::AttrMask mask);  // Requires: both locks
  Status check_qkey(const QpAttributes& attributes, engine::AttrMask mask) const;

  const std::shared_ptr<Context> context_;
  std::atomic<Port*> port_;  // written with both locks held
  const std::vector<RawUse>
      raw_;  // of a raw packet queue pair: for each port of the device, empty where it has no frames
  ProtectionDomain* const domain_;  // nullptr: of an XRC domain
  const std::shared_ptr<XrcDomain> xrc_domain_;
  CompletionQueue* const send_queue_;     // nullptr: sends nothing
  CompletionQueue* const receive_queue_;  // nullptr: receives nothing, or into those of shared receive queues
  SharedReceiveQueue* const shared_receives_;
  EventListeners listeners_;
  const std::uint32_t handle_;
  const bool signal_all_;
  FollowUp to_follow_up_;
  TimerMark timer_mark_;
  std::atomic<Slot> peer_slot_{};  // of a connection; relaxed: it guards nothing
  bool connected_ = true;          // in the table of queue pairs; guarded by the context

  alignas(64) transport::SpinLock send_lock_;
  alignas(64) transport::SpinLock receive_lock_;
  std::optional<Instant> dry_since_;  // the receive side's: no receive was there for a packet
  engine::QueuePair engine_;
};

}  // namespace verbena::device
