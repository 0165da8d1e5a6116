// A queue pair: a send queue, a receive queue and the state that both obey (qp_state.h), as a machine of posts and
// packets in, and packets, completions and events out. InfiniBand Architecture volume 1, chapters 9 and 10.
//
// Sending. post_send() checks a request and puts it, headers encoded and inline data copied, into a slot.
// poll_transmit() yields the next packet; on_transmitted() completes the oldest of those yielded. A request that fails
// when its turn comes completes with its error as soon as those before it are complete, takes a UD or UC queue pair to
// the send queue error state, and all behind it are flushed, in order. What a transport could not take goes back with
// rewind_transmit().
//
// Receiving. on_packet() checks the packet, finds a receive that has room, and scatters header and payload into it. A
// packet that fails a check leaves no trace but the Drop that it returns.
//
// A raw packet queue pair sends and receives whole Ethernet frames instead: on_frame() takes what flow steering
// (flow_table.h) has found to be for it.
//
// Connected types (RC, UC, XRC) send through a Requester and receive through a Responder, which hold what such a
// connection needs beside the queues. Answers to requests are packets of the receive side, and answers that arrive are
// the send side's.
//
// Thread-safety: two owners at a time. The send side (post_send, poll_transmit, on_transmitted, rewind_transmit,
//                next_timeout, settle_send, ...) and the receive side (post_receive, on_packet) share
//                no field but `state_` and `events_`, which are atomic, and what only modify() writes. modify(),
//                query(), fail() and set_mtu() need both sides. state() and poll_event() need none. A side that
//                takes the queue pair to the error state flushes its own queue alone: after any call that left
//                kError, settle_send() and settle_receive() are to be called, each by its side.
// Ownership:     domain, memory table, sinks and source outlive the queue pair. No pointer of a request is kept, except
//                to the user's memory until completion.
// Errors:        posts return an errno; modify() says in words what it refuses; a bad packet is a Drop.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/drop.h"
#include "base/envelope.h"
#include "base/instant.h"
#include "base/psn.h"
#include "base/qpn.h"
#include "engine/completion.h"
#include "engine/connection.h"
#include "engine/memory_table.h"
#include "engine/memory_window.h"
#include "engine/notification_point.h"
#include "engine/pacer.h"
#include "engine/port_view.h"
#include "engine/protection_domain.h"
#include "engine/qp_attributes.h"
#include "engine/qp_state.h"
#include "engine/receive_queue.h"
#include "engine/receive_quirks.h"
#include "engine/requester.h"
#include "engine/responder.h"
#include "engine/send_queue.h"
#include "engine/send_request.h"
#include "engine/shared_receive_queue.h"
#include "engine/transmit.h"
#include "engine/transport_event.h"
#include "engine/xrc_directory.h"
#include "verbena/result.h"
#include "wire/packet.h"

namespace verbena::engine {

// The numbers are those of enum ibv_event_type.
enum class QpEvent : std::uint8_t {
  kFatal = 1,
  kRequestError = 2,
  kAccessError = 3,
  kCommunicationEstablished = 4,
  kSendQueueDrained = 5,
  kLastWqeReached = 16,
};

// What becomes of a request that is posted: a slot and a packet, a slot and a failure when its turn comes, or EINVAL.
enum class SendVerdict : std::uint8_t { kAccept, kFailLater, kRefuse };

// An XRC receive queue pair has an XRC directory, and neither domain nor completion queues; an XRC send queue pair
// receives nothing, and may lack a completion queue for it.
struct QpConfig {
  Qpn qpn;
  QpType type = QpType::kUd;
  const ProtectionDomain* domain = nullptr;
  const MemoryTable* memory = nullptr;
  CompletionSink* send_completions = nullptr;
  CompletionSink* receive_completions = nullptr;
  ReceiveSource* shared_receives = nullptr;  // nullptr: a receive queue of its own
  QpCapabilities capabilities;               // within the limits of the device; the caller has checked
  std::uint32_t most_inline = kMaxInline;    // the device's limit: no more is granted, though a slot may have room
  bool signal_all = false;
  ReceiveQuirks quirks;
  TransportObserver* observer = nullptr;  // of connections; nullptr: none
  WindowBinder* windows = nullptr;        // nullptr: no memory windows
  bool minds_congestion = true;           // of connections: ECN-capable packets, CNPs said and heeded
  const XrcDirectory* xrc = nullptr;      // of an XRC receive queue pair
  bool repeats_selectively = true;        // of reliable connections: tells the other end so
};

class alignas(64) QueuePair {
 public:
  // Throws std::bad_alloc where the queues find no memory.
  explicit QueuePair(const QpConfig& config);
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  // --- any thread
  Qpn qpn() const noexcept { return qpn_; }
  QpType type() const noexcept { return type_; }
  // As granted: never less than asked.
  const QpCapabilities& capabilities() const noexcept { return capabilities_; }
  bool has_shared_receives() const noexcept { return shared_receives_ != nullptr || type_ == QpType::kXrcReceive; }
  bool is_connected() const noexcept { return requester_ != nullptr || responder_ != nullptr; }
  QpState state() const noexcept { return state_.load(std::memory_order_relaxed); }
  // One of the events that happened, each until it is told once; nothing where there is none.
  std::optional<QpEvent> poll_event() noexcept;

  // --- Requires: both sides
  // Checks everything before it changes anything. EINVAL for a step or attribute that the state table or the port does
  // not allow, and for leaving RESET once a completion queue of it was overrun. The rights to a privileged Q_Key are
  // the caller's to check. After a reset the caller takes the queue pair's completions out of its completion queues,
  // and calls give_back_all().
  Status modify(const QpAttributes& attributes, AttrMask mask, const PortView& port);
  QpAttributes query() const noexcept;
  // To the error state, with QP_FATAL, because a completion queue was overrun. Nothing in RESET.
  void fail() noexcept;
  // After a reset, when the caller has taken its completions out of the completion queues: every place is free.
  void give_back_all() noexcept;
  // The port's MTU changed; of a raw packet queue pair PortView::frame_size. Also set by modify() with kAttrPort.
  void set_mtu(std::uint32_t bytes) noexcept { mtu_ = bytes; }
  // How many packets of a connection may be on their way; before the step to RTS.
  void set_window(std::uint32_t packets) noexcept { connection_.window = packets; }
  // How many bits a second the port can send; before the step to RTS.
  void set_line_rate(std::uint64_t bits_per_second) noexcept { connection_.line_rate = bits_per_second; }

  // --- Requires: the send side
  // 0; EINVAL for the state, the opcode, a flag that is not offered, too many SGEs, inline data too long, no address
  // handle; ENOMEM where full.
  int post_send(const SendRequest& request) noexcept;
  // What post_send() would answer if there were room, and how many there is room for.
  int check_send(const SendRequest& request) const noexcept;
  std::size_t send_room() noexcept { return send_queue_.room(); }
  // The next packet to send, if there is one that may go now. Each is sent in order.
  bool poll_transmit(Instant now, Transmit& packet) noexcept;
  // The oldest `count` packets that were yielded are on the network: their requests complete.
  void on_transmitted(std::size_t count) noexcept;
  // Those yielded and not transmitted are yielded again.
  void rewind_transmit() noexcept;
  // When poll_transmit() should be called again, where it waits for the pace of an address handle or path.
  std::optional<Instant> next_departure() const noexcept;
  // Whether poll_transmit() has something to yield or to flush, now or at next_departure().
  bool has_untransmitted() const noexcept;
  // Flushes what waits if the receive side has taken the queue pair to the error state; also part of poll_transmit().
  // To be called after an on_packet() that left the state kError.
  void settle_send() noexcept;
  // An answer to a request of a connection. More may be sent then.
  Drop on_response(const wire::Packet& packet, const Envelope& envelope, Instant now) noexcept {
    if (is_marked(envelope.traffic_class)) [[unlikely]]
      on_marked(packet, envelope, now);
    return take_response(packet, envelope, now);
  }
  // When on_timeout() should be called; nothing where no answer is waited for.
  std::optional<Instant> next_timeout() const noexcept;
  void on_timeout(Instant now) noexcept;
  // A CNP: requests are slowed down. Where it is kNone, slow_answers() is to be called, too.
  Drop on_cnp(const wire::Packet& packet, const Envelope& envelope, Instant now) noexcept;
  // How many requests that keep their place name the handle; they no longer do.
  std::size_t forget_address(const AddressHandle& handle) noexcept { return send_queue_.forget_address(handle); }
  // The UDP source port of packets to address handles without flow label.
  void set_source_port(std::uint16_t port) noexcept { source_port_ = port; }

  // --- Requires: the receive side
  // 0; EINVAL in RESET, with a shared receive queue, for an XRC queue pair, for too many SGEs; ENOMEM where full.
  int post_receive(std::uint64_t wr_id, std::span<const Sge> sges) noexcept;
  // Not for answers. kNone: delivered. `udp_payload_size` counts the ICRC, present or not. Neither packet nor envelope
  // is kept.
  Drop on_packet(const wire::Packet& packet, const Envelope& envelope, std::size_t udp_payload_size,
                 Instant now) noexcept {
    if (is_marked(envelope.traffic_class)) [[unlikely]]
      on_marked(packet, envelope, now);
    return take_packet(packet, envelope, udp_payload_size);
  }
  // An Ethernet frame, without its check sequence. Requires: a raw packet queue pair. kNone: delivered.
  Drop on_frame(std::span<const std::byte> frame) noexcept;
  // Answers to the requests of a connection and its CNPs, as poll_transmit() and its companions. Also in the error
  // state.
  bool poll_response(Instant now, Transmit& packet) noexcept {
    if (notification_.is_due() && make_cnp(packet)) [[unlikely]]
      return true;
    return poll_answer(now, packet);
  }
  void on_responded(std::size_t count) noexcept {
    if (notification_.is_yielded() && count != 0) [[unlikely]] {
      on_cnp_transmitted();
      --count;
    }
    if (responder_ != nullptr) responder_->on_transmitted(count);
  }
  void rewind_responses() noexcept;
  bool has_responses() const noexcept {
    return (responder_ != nullptr && responder_->has_responses()) || notification_.is_due();
  }
  // When poll_response() should be called again, where answers wait for the pace.
  std::optional<Instant> next_response() const noexcept;
  // There was a CNP, which on_cnp() has found good.
  void slow_answers(Instant now) noexcept;
  // Flushes the receive queue if the send side has taken the queue pair to the error state.
  void settle_receive() noexcept;

 private:
  Pkey pkey() const noexcept { return connection_.pkey; }
  bool sends_datagrams() const noexcept { return type_ == QpType::kUd; }
  bool sends_frames() const noexcept { return type_ == QpType::kRawPacket; }
  Status check_attributes(const QpAttributes& attributes, AttrMask mask, const PortView& port) const;
  void apply(const QpAttributes& attributes, AttrMask mask, const PortView& port) noexcept;
  void enter(QpState from, QpState to) noexcept;
  Status prepare_responder(QpState to, const QpAttributes& attributes, AttrMask mask);
  Status prepare_connection(QpState to, const QpAttributes& attributes, AttrMask mask, const PortView& port);
  void reset() noexcept;
  void raise(QpEvent event) noexcept;

  // Send side.
  // 0 or EINVAL; where 0, also the length of the payload and what becomes of the request.
  int judge(const SendRequest& request, std::uint64_t& length, SendVerdict& verdict) const noexcept;
  SendVerdict verdict_on(const SendRequest& request) const noexcept;
  bool may_use(const AddressHandle& address) const noexcept;
  SendVerdict verdict_on_datagram(const SendRequest& request) const noexcept;
  SendVerdict verdict_on_request(const SendRequest& request) const noexcept;
  SendVerdict verdict_on_frame(const SendRequest& request) const noexcept;
  void write_wqe(const SendRequest& request, std::uint64_t length, SendVerdict verdict) noexcept;
  void encode_ud(const SendRequest& request, SendWqe& wqe) noexcept;
  bool begin_ud(Instant now, Transmit& packet) noexcept;
  void encode_frame(SendWqe& wqe) noexcept;
  bool begin_frame(Instant now, Transmit& packet) noexcept;
  MemoryFault gather(SendWqe& wqe, Transmit& packet) const noexcept;
  bool stop_sending(WcStatus status, MemoryFault fault) noexcept;
  void settle_fault() noexcept;
  void complete_send(WcStatus status, MemoryFault fault) noexcept;
  void flush_send() noexcept;
  void raise_if_drained() noexcept;
  bool sends_requests() const noexcept {
    return state() == QpState::kReadyToSend || state() == QpState::kSendQueueDrained;
  }
  bool poll_request(Instant now, Transmit& packet) noexcept;
  void settle_requests() noexcept;
  void fail_request(const Requester::Failure& failure) noexcept;

  // Receive side.
  std::uint8_t credits() const noexcept;
  bool poll_answer(Instant now, Transmit& packet) noexcept;
  Drop receive_request(const wire::Packet& packet) noexcept;
  Drop carry_out(const wire::Packet& packet) noexcept;
  CompletionSink& receive_sink() const noexcept;
  Drop check_connected(const wire::Packet& packet, const Envelope& envelope) const noexcept;
  Drop check_peer(const wire::Packet& packet, const Envelope& envelope) const noexcept;
  Drop take_packet(const wire::Packet& packet, const Envelope& envelope, std::size_t udp_payload_size) noexcept;
  Drop take_response(const wire::Packet& packet, const Envelope& envelope, Instant now) noexcept;
  void on_marked(const wire::Packet& packet, const Envelope& envelope, Instant now) noexcept;
  bool make_cnp(Transmit& packet) noexcept;
  void on_cnp_transmitted() noexcept;
  void observe(TransportEvent event) const noexcept {
    if (observer_ != nullptr) observer_->on_transport_event(event);
  }
  Drop receive_ud(const wire::Packet& packet, const Envelope& envelope, std::size_t udp_payload_size) noexcept;
  Drop deliver_ud(const wire::Packet& packet, const Envelope& envelope, std::size_t udp_payload_size,
                  const ReceiveRequest& request) noexcept;
  Drop deliver_frame(std::span<const std::byte> frame, const ReceiveRequest& request) noexcept;
  void describe_path(const Envelope& envelope, Completion& completion) const noexcept;
  Drop fail_receive(std::uint64_t wr_id, MemoryFault fault) noexcept;
  void complete_receive(std::uint64_t wr_id, WcStatus status, MemoryFault fault) noexcept;
  Place receive_place() noexcept;
  void flush_receive() noexcept;

  // Never changes.
  const Qpn qpn_;
  const QpType type_;
  const bool signal_all_;
  const ProtectionDomain* const domain_;
  const MemoryTable* const memory_;
  CompletionSink* const send_completions_;
  CompletionSink* const receive_completions_;
  ReceiveSource* const shared_receives_;
  const ReceiveQuirks quirks_;
  const bool has_windows_;
  TransportObserver* const observer_;

  // Written by modify(), with both sides held; read by both.
  std::uint32_t mtu_ = 0;
  BytePeriod frame_period_ = 0;  // the rate limit of a raw packet queue pair
  std::uint8_t port_ = 0;
  Qkey qkey_;
  Connection connection_;

  // Written by modify(), by the send side (to kSendQueueError or kError) and by the receive side (to kError). Relaxed:
  // it guards no other memory; each side orders its own fields by the lock of its owner.
  std::atomic<QpState> state_{QpState::kReset};
  // Bit QpEvent of what is to be told. Relaxed: it guards nothing.
  std::atomic<std::uint32_t> events_{0};

  NotificationPoint notification_;

  // Send side.
  alignas(64) SendQueue send_queue_;
  Psn next_psn_;
  Pacer pacer_;
  std::uint16_t source_port_ = 0;
  WcStatus fault_status_ = WcStatus::kSuccess;  // of the request at the cursor; kSuccess: none has failed
  MemoryFault fault_ = MemoryFault::kNone;
  bool drain_event_wanted_ = false;
  std::unique_ptr<Requester> requester_;

  // Receive side.
  alignas(64) ReceiveQueue receive_queue_;
  GivenBack receives_given_back_;
  bool established_ = false;       // the first packet of the connection has come
  bool receives_flushed_ = false;  // since the state is kError
  std::unique_ptr<Responder> responder_;

  // Both sides.
  QpCapabilities capabilities_;
  QpAttributes attributes_;
};

}  // namespace verbena::engine
