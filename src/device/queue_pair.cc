#include "device/queue_pair.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "device/async_event.h"
#include "device/clock.h"
#include "device/log.h"
#include "device/privilege.h"
#include "device/raw_port.h"
#include "device/rcu.h"
#include "wire/source_port.h"

namespace verbena::device {
namespace {

constexpr std::size_t kBatch = 16;
constexpr std::size_t kMostBatches = 16;
// Packets of a connection that may be on their way: what a ring holds, and what the socket of a receiver holds with the
// buffer that the kernel gives it (net.core.rmem_max).
constexpr std::uint32_t kSharedWindow = 128;
constexpr std::uint32_t kWireWindow = 32;
// What memory carries, in bits a second; congested only where VERBENA_IMPAIR says so.
constexpr std::uint64_t kSharedLineRate = 100'000'000'000;
constexpr std::uint32_t kPrivilegedQkey = 0x80000000;

// Where one thread's packets lie between the engine and the transport. Kept because filling it anew costs more than
// the packets.
struct Scratch {
  std::array<engine::Transmit, kBatch> packets;
  std::array<transport::Outgoing, kBatch> outgoing;
};

Scratch& scratch() {
  static thread_local const auto kept = std::make_unique<Scratch>();
  return *kept;
}

Status check_init(const Context& context, const QpInit& init) {
  const auto& limits = context.limits();
  const auto& wanted = init.capabilities;
  const auto refuse = [&context](std::string_view what, std::uint32_t value, std::uint32_t limit) {
    return failure(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: a queue pair with {} {}; up to {} are possible", context.device().name(), what, value, limit),
        EINVAL);
  };
  const bool receives = init.type != QpType::kXrcSend;
  if (init.send_queue == nullptr || (receives && init.receive_queue == nullptr)) {
    return failure(
        ErrorCode::kInvalidArgument,
        receives ? "a queue pair needs a completion queue for each side" : "a queue pair needs a completion queue",
        EINVAL);
  }
  if (wanted.max_send_wr > limits.max_qp_wr) return refuse("max_send_wr", wanted.max_send_wr, limits.max_qp_wr);
  if (wanted.max_recv_wr > limits.max_qp_wr) return refuse("max_recv_wr", wanted.max_recv_wr, limits.max_qp_wr);
  if (wanted.max_send_sge > limits.max_sge) return refuse("max_send_sge", wanted.max_send_sge, limits.max_sge);
  if (wanted.max_recv_sge > limits.max_sge) return refuse("max_recv_sge", wanted.max_recv_sge, limits.max_sge);
  if (wanted.max_inline_data > limits.max_inline) {
    return refuse("max_inline_data", wanted.max_inline_data, limits.max_inline);
  }
  if (init.type == QpType::kXrcReceive) {
    return failure(ErrorCode::kInvalidArgument,
                   "an XRC receive queue pair is made in an XRC domain (IBV_QP_INIT_ATTR_XRCD), not in a protection "
                   "domain",
                   EINVAL);
  }
  return {};
}

// Who may have raw packet queue pairs, and where.
Status check_raw(const Context& context) {
  if (!may_use_raw_network()) {
    return failure(ErrorCode::kPermission,
                   fmt::format("{}: a raw packet queue pair needs CAP_NET_RAW", context.device().name()), EPERM);
  }
  const auto ports = context.ports();
  if (std::any_of(ports.begin(), ports.end(), [](const Port* port) { return !port->is_infiniband(); })) return {};
  return failure(ErrorCode::kUnsupported,
                 fmt::format("{}: a raw packet queue pair needs a RoCE port, and this device has InfiniBand ports only",
                             context.device().name()),
                 EOPNOTSUPP);
}

// For each port of the device; nothing of those that have no frames, unless that is all of them.
Result<std::vector<RawUse>> use_raw_ports(Context& context) {
  std::vector<RawUse> uses;
  bool any = false;
  Status refusal;
  for (Port* const port : context.ports()) {
    RawUse& use = uses.emplace_back();
    if (port->is_infiniband()) continue;
    auto opened = context.runtime().raw_ports().use(*port);
    if (opened) {
      use = std::move(*opened);
      any = true;
    } else if (opened.error().code == ErrorCode::kUnsupported) {
      refusal = tl::make_unexpected(opened.error());
    } else {
      return tl::make_unexpected(opened.error());
    }
  }
  if (!any && !refusal) return tl::make_unexpected(refusal.error());
  return uses;
}

// Calls `action` with each completion queue that is there, once for each side.
template <class Action>
void for_each_side(CompletionQueue* send_queue, CompletionQueue* receive_queue, Action action) {
  if (send_queue != nullptr) action(*send_queue);
  if (receive_queue != nullptr) action(*receive_queue);
}

}  // namespace

tl::unexpected<Error> without_frames(const Port& port) {
  return failure(
      ErrorCode::kUnsupported,
      fmt::format("{}: raw packets need a port with Ethernet frames, which this one does not have", port.name()),
      EOPNOTSUPP);
}

Result<std::unique_ptr<QueuePair>> QueuePair::create(ProtectionDomain& domain, const QpInit& init) {
  if (init.type == QpType::kRawPacket) {
    if (auto may = check_raw(domain.context()); !may) return tl::make_unexpected(may.error());
  }
  if (auto checked = check_init(domain.context(), init); !checked) return tl::make_unexpected(checked.error());
  QpInit used = init;
  if (init.type == QpType::kXrcSend) {
    used.receive_queue = nullptr;
    used.shared_receives = nullptr;
    used.capabilities.max_recv_wr = used.capabilities.max_recv_sge = 0;
  }
  return make({domain.context(), domain.context(), &domain, nullptr}, used);
}

Result<std::shared_ptr<QueuePair>> QueuePair::create_xrc_receive(const std::shared_ptr<XrcDomain>& domain,
                                                                 Context& maker, std::uint64_t element) {
  QpInit init;
  init.type = QpType::kXrcReceive;
  init.element = element;
  auto made = make({domain->context(), maker, nullptr, domain}, init);
  if (!made) return tl::make_unexpected(made.error());
  std::shared_ptr<QueuePair> shared(std::move(*made));
  domain->enlist(shared);
  return shared;
}

Result<std::unique_ptr<QueuePair>> QueuePair::make(const Place& place, const QpInit& init) {
  Context& context = place.context;
  std::vector<RawUse> raw;
  if (init.type == QpType::kRawPacket) {
    auto uses = use_raw_ports(context);
    if (!uses) return tl::make_unexpected(uses.error());
    raw = std::move(*uses);
  }
  if (auto entered = context.enter(ObjectKind::kQueuePair); !entered) return tl::make_unexpected(entered.error());
  auto qpn = context.runtime().reserve_qpn();
  if (!qpn) {
    context.leave(ObjectKind::kQueuePair);
    return tl::make_unexpected(qpn.error());
  }
  try {
    std::unique_ptr<QueuePair> made(new QueuePair(place, init, *qpn, std::move(raw)));
    context.runtime().queue_pairs().publish(*qpn, *made);
    return made;
  } catch (const std::bad_alloc&) {
    context.runtime().queue_pairs().release(*qpn);
    context.leave(ObjectKind::kQueuePair);
    return failure(ErrorCode::kExhausted,
                   fmt::format("no memory for a queue pair with {} sends and {} receives",
                               init.capabilities.max_send_wr, init.capabilities.max_recv_wr),
                   ENOMEM);
  }
}

engine::QpConfig QueuePair::config_of(const QpInit& init, Qpn qpn) noexcept {
  return {.qpn = qpn,
          .type = init.type,
          .domain = domain_ == nullptr ? nullptr : &domain_->engine(),
          .memory = &context_->memory(),
          .send_completions = send_queue_,
          .receive_completions = receive_queue_,
          .shared_receives = shared_receives_,
          .capabilities = init.capabilities,
          .most_inline = context_->limits().max_inline,
          .signal_all = init.signal_all,
          .quirks = context_->quirks().of_receiving(),
          .observer = this,
          .windows = context_.get(),
          .minds_congestion = context_->runtime().settings().congestion_control,
          .xrc = xrc_domain_.get(),
          .repeats_selectively = context_->runtime().settings().selective_repeat};
}

QueuePair::QueuePair(const Place& place, const QpInit& init, Qpn qpn, std::vector<RawUse> raw)
    : context_(place.context.shared_from_this()),
      port_(context_->ports().front()),
      raw_(std::move(raw)),
      domain_(place.domain),
      xrc_domain_(place.xrc_domain),
      send_queue_(init.send_queue),
      receive_queue_(init.receive_queue),
      shared_receives_(init.shared_receives),
      handle_(context_->next_handle()),
      signal_all_(init.signal_all),
      engine_(config_of(init, qpn)) {
  listeners_.add(place.maker, init.element);
  engine_.set_source_port(wire::source_port_of_qpn(qpn));
  context_->enlist(*this);
  for_each_side(send_queue_, receive_queue_, [this](CompletionQueue& queue) { queue.attach(*this); });
  if (shared_receives_ != nullptr) shared_receives_->attach();
  if (domain_ != nullptr) domain_->engine().enter(engine::Resident::kQueuePair);
}

// First nothing can reach it any more, then what it used may go.
QueuePair::~QueuePair() {
  for_each_side(send_queue_, receive_queue_, [this](CompletionQueue& queue) { queue.forget(*this); });
  if (context_->alive()) {
    context_->discharge(*this);
    disconnect();
    wait_for_readers();  // packets on their way into it
    disconnect_from_time();
    context_->free_windows_of(qpn());
    context_->runtime().queue_pairs().release(qpn());
    for_each_side(send_queue_, receive_queue_, [this](CompletionQueue& queue) { queue.remove_of(qpn()); });
    listeners_.remove_all();
  }
  for_each_side(send_queue_, receive_queue_, [](CompletionQueue& queue) { queue.release_use(); });
  if (shared_receives_ != nullptr) shared_receives_->detach();
  context_->leave(ObjectKind::kQueuePair);
  if (domain_ != nullptr) domain_->engine().leave(engine::Resident::kQueuePair);
}

void QueuePair::disconnect() noexcept {
  if (!std::exchange(connected_, false)) return;
  context_->runtime().queue_pairs().unpublish(qpn());
  disconnect_from_time();
}

// Nobody calls it any more because it waits for something.
void QueuePair::disconnect_from_time() noexcept {
  context_->runtime().remove_pending(*this);
  context_->runtime().remove_timer(*this);
}

Status QueuePair::check_qkey(const QpAttributes& attributes, engine::AttrMask mask) const {
  if ((mask & engine::kAttrQkey) == 0 || (attributes.qkey & kPrivilegedQkey) == 0 || may_use_raw_network()) return {};
  return failure(ErrorCode::kPermission,
                 fmt::format("Q_Key {:#010x} has its high bit set, which needs CAP_NET_RAW; take one below 0x80000000",
                             attributes.qkey),
                 EPERM);
}

// Which port it is on when the attributes hold; that of now where they name none that the device has, which the engine
// refuses.
Result<Port*> QueuePair::port_for(const QpAttributes& attributes, engine::AttrMask mask) {
  if ((mask & engine::kAttrPort) == 0) return &port();
  Port* const named = context_->find_port(attributes.port);
  if (named == nullptr || named == &port()) return &port();
  const QpState state = engine_.state();
  if (state == QpState::kReset || state == QpState::kInit) return named;
  return failure(ErrorCode::kInvalidArgument,
                 fmt::format("{}: queue pair {:#x} stays on port {} until it is reset: take it to RESET, and name port "
                             "{} when it goes to INIT",
                             context_->device().name(), qpn().value(), port().number(), attributes.port),
                 EINVAL);
}

Status QueuePair::modify(const QpAttributes& attributes, engine::AttrMask mask) {
  if (auto checked = check_qkey(attributes, mask); !checked) return checked;
  Status result;
  bool moved = false;
  {
    const std::scoped_lock both(send_lock_, receive_lock_);
    const RcuReadSection section;
    auto on = port_for(attributes, mask);
    if (!on) return tl::make_unexpected(on.error());
    const bool names_port = (mask & engine::kAttrPort) != 0;
    if (names_port && !raw_.empty() && !has_frames_on(**on)) return without_frames(**on);
    result = engine_.modify(attributes, mask, (*on)->snapshot().view());
    if (result) moved = port_.exchange(*on, std::memory_order_relaxed) != *on;
    if (result && engine_.is_connected() && engine_.state() == QpState::kReadyToReceive) {
      meet_peer(attributes);
    }
    if (result && engine_.state() == QpState::kReset) {
      for_each_side(send_queue_, receive_queue_, [this](CompletionQueue& queue) { queue.remove_of(qpn()); });
      engine_.give_back_all();
    }
    if (result && (engine_.state() == QpState::kReadyToSend || engine_.state() == QpState::kSendQueueDrained)) {
      transmit(now());  // what waited in SQD
      if (engine_.is_connected()) engine_.settle_receive();
      if (engine_.has_untransmitted()) context_->runtime().add_pending(*this);
    }
  }
  if (moved) context_->runtime().follow_port(*this);
  tell_events();
  return result;
}

// How many packets may be on their way to it, and which process of this host it is.
void QueuePair::meet_peer(const QpAttributes& attributes) noexcept {
  const bool near = context_->runtime().is_on_this_host(port(), attributes.address);
  engine_.set_window(near ? kSharedWindow : kWireWindow);
  engine_.set_line_rate(near ? kSharedLineRate : port().snapshot().line_rate);
  peer_slot_.store(near ? Qpn(attributes.destination_qpn).slot() : Slot{}, std::memory_order_relaxed);
}

QpAttributes QueuePair::query() noexcept {
  const std::scoped_lock both(send_lock_, receive_lock_);
  return engine_.query();
}

void QueuePair::fail() noexcept {
  {
    const std::scoped_lock both(send_lock_, receive_lock_);
    const RcuReadSection section;  // of XRC: for the queue whose receive is flushed
    engine_.fail();
  }
  tell_events();
}

void QueuePair::set_mtu(const Port& port, std::uint32_t bytes) noexcept {
  const std::scoped_lock both(send_lock_, receive_lock_);
  if (&this->port() == &port && raw_.empty()) engine_.set_mtu(bytes);  // a raw packet one asks before it sends
}

void QueuePair::tell_events() noexcept {
  while (const auto event = engine_.poll_event()) {
    listeners_.tell(static_cast<std::uint32_t>(*event));
  }
}

// --- sending

void QueuePair::finish_posting() noexcept {
  if (!context_->alive()) return;
  const RcuReadSection section;
  transmit(now());
  settle_receives();
  if (engine_.has_untransmitted()) context_->runtime().add_pending(*this);
  tell_events();
}

// After transmit(), which flushes the send side where the queue pair is in the error state: the receive side too.
void QueuePair::settle_receives() noexcept {
  if (!engine_.is_connected() || engine_.state() != QpState::kError) return;
  const std::lock_guard guard(receive_lock_);
  engine_.settle_receive();
}

// --- connections

Drop QueuePair::receive_connected(const wire::Packet& packet, const Envelope& envelope, std::size_t udp_payload_size,
                                  Instant now) noexcept {
  Drop drop;
  const wire::OpcodeRow& row = wire::row_of(packet.bth.opcode);
  if (row.is_response()) {
    const std::lock_guard guard(send_lock_);
    drop = engine_.on_response(packet, envelope, now);
  } else if (row.transport == wire::Transport::kCnp) [[unlikely]] {
    drop = receive_cnp(packet, envelope, now);
  } else {
    const std::lock_guard guard(receive_lock_);
    drop = engine_.on_packet(packet, envelope, udp_payload_size, now);
  }
  if (drop == Drop::kNone) count_received(udp_payload_size);
  return drop;
}

Drop QueuePair::receive_cnp(const wire::Packet& packet, const Envelope& envelope, Instant now) noexcept {
  Drop drop;
  {
    const std::lock_guard guard(send_lock_);
    drop = engine_.on_cnp(packet, envelope, now);
  }
  if (drop != Drop::kNone) return drop;
  const std::lock_guard guard(receive_lock_);
  engine_.slow_answers(now);
  return drop;
}

void QueuePair::count_received(std::size_t udp_payload_size) noexcept {
  port().counters().add(Traffic::kReceivedPackets, 1);
  port().counters().add(Traffic::kReceivedBytes, udp_payload_size - wire::kIcrcSize);
}

void QueuePair::follow_up(Instant now) noexcept {
  bool waits = false;
  {
    const std::lock_guard guard(receive_lock_);
    respond(now);
    waits = engine_.has_responses();
  }
  {
    const std::lock_guard guard(send_lock_);
    transmit(now);
    settle_receives();
    waits = waits || engine_.has_untransmitted();
  }
  if (waits) context_->runtime().add_pending(*this);
  tell_events();
}

void QueuePair::on_timer(Instant now) noexcept {
  constexpr Duration kBusy{100'000};
  if (!send_lock_.try_lock()) {
    context_->runtime().arm_timer(*this, now + kBusy);
    return;
  }
  bool waits = false;
  {
    const std::lock_guard guard(send_lock_, std::adopt_lock);
    engine_.on_timeout(now);
    transmit(now);
    settle_receives();
    waits = engine_.has_untransmitted();
  }
  if (waits) context_->runtime().add_pending(*this);
  tell_events();
}

void QueuePair::on_transport_event(engine::TransportEvent event) noexcept {
  // By the number of the event.
  static constexpr std::array kCounters{
      Traffic::kDuplicateRequests,
      Traffic::kOutOfSequenceRequests,
      Traffic::kRnrNaksSent,
      Traffic::kRnrNaksReceived,
      Traffic::kSequenceNaksReceived,
      Traffic::kRetransmissions,
      Traffic::kAckTimeouts,
      Traffic::kRetriesExceeded,
      Traffic::kRnrRetriesExceeded,
      Traffic::kAcksSent,
      Traffic::kCnpSent,
      Traffic::kCnpHandled,
      Traffic::kEcnMarked,
      Traffic::kSentAgain,
      Traffic::kKeptEarly,
      Traffic::kSelectiveAcksSent,
      Traffic::kSelectiveAcksReceived,
  };
  port().counters().add(kCounters[static_cast<std::size_t>(event)], 1);
}

template <class Poll, class Done, class Rewind>
void QueuePair::put_out(Instant at, Poll poll, Done done, Rewind rewind) noexcept {
  auto& [packets, outgoing] = scratch();
  Port& out = port();
  // The rest of a long message waits for its turn among others.
  for (std::size_t batch = 0; batch < kMostBatches || !engine_.is_connected(); ++batch) {
    std::size_t count = 0;
    while (count < kBatch && poll(packets[count])) {
      const auto& packet = packets[count];
      outgoing[count] = {.envelope = packet.envelope,
                         .parts = packet.list(),
                         .size = packet.size,
                         .slot = packet.destination_qpn.slot(),
                         .has_icrc = false,
                         .network_header = {}};
      ++count;
    }
    if (count == 0) return;
    transport::SendResult sent{.taken = count, .full = false};
    if (out.snapshot().up) {
      sent = put_on_network(std::span(outgoing).first(count), at);
    } else {
      out.counters().count(Drop::kPortDown, count);
    }
    std::uint64_t bytes = 0;
    for (const auto& packet : std::span(packets).first(sent.taken)) bytes += packet.size;
    done(sent.taken);
    out.counters().add(Traffic::kSentPackets, sent.taken);
    out.counters().add(Traffic::kSentBytes, bytes);
    if (sent.taken < count) {
      rewind();
      return;
    }
  }
}

transport::SendResult QueuePair::put_on_network(std::span<const transport::Outgoing> batch, Instant at) noexcept {
  if (raw_.empty()) [[likely]]
    return context_->runtime().send(batch, at);
  return raw_[port().number() - kFirstPort]->send(batch, at);
}

void QueuePair::transmit(Instant at) noexcept {
  if (!raw_.empty()) [[unlikely]]
    engine_.set_mtu(port().snapshot().view().frame_size);
  put_out(
      at, [&](engine::Transmit& packet) { return engine_.poll_transmit(at, packet); },
      [&](std::size_t count) { engine_.on_transmitted(count); }, [&] { engine_.rewind_transmit(); });
  if (engine_.is_connected()) arm_timer();
}

void QueuePair::respond(Instant at) noexcept {
  if (!engine_.has_responses()) return;
  put_out(
      at, [&](engine::Transmit& packet) { return engine_.poll_response(at, packet); },
      [&](std::size_t count) { engine_.on_responded(count); }, [&] { engine_.rewind_responses(); });
}

void QueuePair::arm_timer() noexcept {
  if (const auto due = engine_.next_timeout()) context_->runtime().arm_timer(*this, *due);
}

bool QueuePair::retry_send(Instant now) noexcept {
  bool waits = false;
  if (engine_.is_connected()) {
    if (!receive_lock_.try_lock()) return false;
    const std::lock_guard guard(receive_lock_, std::adopt_lock);
    respond(now);
    waits = engine_.has_responses();
  }
  if (!send_lock_.try_lock()) return false;
  const std::lock_guard guard(send_lock_, std::adopt_lock);
  transmit(now);
  settle_receives();
  tell_events();
  return !waits && !engine_.has_untransmitted();
}

std::size_t QueuePair::forget_address(const engine::AddressHandle& handle) noexcept {
  const std::lock_guard guard(send_lock_);
  return engine_.forget_address(handle);
}

std::optional<Instant> QueuePair::send_due(Instant now) noexcept {
  std::optional<Instant> first;
  if (engine_.is_connected()) {
    if (!receive_lock_.try_lock()) return std::nullopt;
    const std::lock_guard guard(receive_lock_, std::adopt_lock);
    if (engine_.has_responses()) {
      first = engine_.next_response();
      if (!first || *first <= now) return std::nullopt;
    }
  }
  if (!send_lock_.try_lock()) return std::nullopt;
  const std::lock_guard guard(send_lock_, std::adopt_lock);
  if (!engine_.has_untransmitted()) return first;
  const auto due = engine_.next_departure();
  if (!due || *due <= now) return std::nullopt;
  return first ? std::min(*first, *due) : *due;
}

// --- receiving

// A program that polls may be about to post again; one that does not may be waiting for a processor.
bool QueuePair::would_rather_wait(Instant now, bool patient) noexcept {
  constexpr Duration kOfPolling = std::chrono::milliseconds(1);
  constexpr Duration kOfHelper = std::chrono::milliseconds(20);
  const std::lock_guard guard(receive_lock_);
  if (!dry_since_) dry_since_ = now;
  return now - *dry_since_ < (patient ? kOfHelper : kOfPolling);
}

Drop QueuePair::receive(const wire::Packet& packet, const Envelope& envelope, std::size_t udp_payload_size) noexcept {
  Drop drop;
  {
    const std::lock_guard guard(receive_lock_);
    drop = engine_.on_packet(packet, envelope, udp_payload_size, Instant{});
    if (drop == Drop::kNone) dry_since_.reset();
  }
  if (drop == Drop::kNone) {
    count_received(udp_payload_size);
    return drop;
  }
  return conclude(drop);
}

Drop QueuePair::receive_frame(std::span<const std::byte> frame) noexcept {
  Drop drop;
  {
    const std::lock_guard guard(receive_lock_);
    drop = engine_.on_frame(frame);
    if (drop == Drop::kNone) dry_since_.reset();
  }
  if (drop != Drop::kNone) return conclude(drop);
  port().counters().add(Traffic::kReceivedPackets, 1);
  port().counters().add(Traffic::kReceivedBytes, frame.size());
  return drop;
}

// After a packet that was not delivered.
Drop QueuePair::conclude(Drop drop) noexcept {
  if (engine_.state() == QpState::kError) {
    const std::lock_guard guard(send_lock_);
    engine_.settle_send();
  }
  tell_events();
  return drop;
}

}  // namespace verbena::device
