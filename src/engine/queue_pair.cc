// The life of a queue pair: creation, modify, query, events. The data paths are in files of their own, by type.
#include "engine/queue_pair.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>
#include <string>
#include <utility>

#include "wire/infiniband_header.h"
#include "wire/mtu.h"
#include "wire/source_port.h"

namespace verbena::engine {
namespace {

constexpr std::uint8_t kMaxFiveBits = 31;   // timers
constexpr std::uint8_t kMaxThreeBits = 7;   // retries
constexpr std::uint8_t kMaxRdAtomic = 128;  // as Limits::max_rd_atomic
constexpr std::uint8_t kMigrated = 0;       // enum ibv_mig_state; the only one there is without alternate path

tl::unexpected<Error> refuse(std::string message) {
  return failure(ErrorCode::kInvalidArgument, std::move(message), EINVAL);
}

std::string step_name(QpType type, QpState from, QpState to) {
  return std::string(name_of(type)) + " queue pair from " + std::string(name_of(from)) + " to " +
         std::string(name_of(to));
}

// One row for each attribute that is a bare number.
struct RangeRow {
  AttrMask bit;
  std::uint8_t QpAttributes::*field;
  std::uint8_t least;
  std::uint8_t most;
  std::string_view name;
};
constexpr std::array<RangeRow, 8> kRanges{{
    {kAttrTimeout, &QpAttributes::timeout, 0, kMaxFiveBits, "timeout"},
    {kAttrRetryCount, &QpAttributes::retry_count, 0, kMaxThreeBits, "retry_cnt"},
    {kAttrRnrRetry, &QpAttributes::rnr_retry, 0, kMaxThreeBits, "rnr_retry"},
    {kAttrMinRnrTimer, &QpAttributes::min_rnr_timer, 0, kMaxFiveBits, "min_rnr_timer"},
    {kAttrMaxRdAtomic, &QpAttributes::max_rd_atomic, 0, kMaxRdAtomic, "max_rd_atomic"},
    {kAttrMaxDestRdAtomic, &QpAttributes::max_dest_rd_atomic, 0, kMaxRdAtomic, "max_dest_rd_atomic"},
    {kAttrPathMigrationState, &QpAttributes::path_migration_state, kMigrated, kMigrated, "path_mig_state"},
    {kAttrPathMtu, &QpAttributes::path_mtu, 1, 5, "path_mtu"},
}};

Status check_ranges(const QpAttributes& attributes, AttrMask mask) {
  for (const RangeRow& row : kRanges) {
    const std::uint8_t value = attributes.*row.field;
    if ((mask & row.bit) != 0 && (value < row.least || value > row.most)) {
      return refuse(std::string(row.name) + " " + std::to_string(value) + " is not within " +
                    std::to_string(row.least) + " to " + std::to_string(row.most));
    }
  }
  return {};
}

// Of a connected type; nothing for the others.
std::optional<wire::Transport> transport_of(QpType type) noexcept {
  switch (type) {
    case QpType::kRc:
      return wire::Transport::kRc;
    case QpType::kUc:
      return wire::Transport::kUc;
    case QpType::kXrcSend:
    case QpType::kXrcReceive:
      return wire::Transport::kXrc;
    case QpType::kUd:
    case QpType::kRawPacket:
      break;
  }
  return std::nullopt;
}

// Local ACK timeout: 4.096 us x 2^code (section 9.7.6.1.3); 0: none.
Duration ack_timeout(std::uint8_t code) noexcept {
  constexpr Duration kUnit{4096};
  return code == 0 ? Duration{0} : Duration(kUnit.count() << code);
}

}  // namespace

QueuePair::QueuePair(const QpConfig& config)
    : qpn_(config.qpn),
      type_(config.type),
      signal_all_(config.signal_all),
      domain_(config.domain),
      memory_(config.memory),
      send_completions_(config.send_completions),
      receive_completions_(config.receive_completions),
      shared_receives_(config.shared_receives),
      quirks_(config.quirks),
      has_windows_(config.windows != nullptr),
      observer_(config.observer),
      send_queue_(config.capabilities.max_send_wr, config.capabilities.max_send_sge,
                  config.capabilities.max_inline_data),
      receive_queue_(config.shared_receives == nullptr ? config.capabilities.max_recv_wr : 0,
                     config.capabilities.max_recv_sge),
      capabilities_(config.capabilities) {
  capabilities_.max_inline_data =
      std::max(config.capabilities.max_inline_data, std::min(send_queue_.max_inline(), config.most_inline));
  capabilities_.max_send_sge = std::min(capabilities_.max_send_sge, std::uint32_t{kMaxSge});
  capabilities_.max_recv_sge = std::min(capabilities_.max_recv_sge, std::uint32_t{kMaxSge});
  const auto transport = transport_of(type_);
  if (!transport) return;
  connection_.transport = *transport;
  connection_.reliable = type_ != QpType::kUc;
  connection_.rnr_nak_lost = config.quirks.rnr_nak_lost;
  connection_.congestion_control = config.minds_congestion;
  connection_.repeats_selectively = config.repeats_selectively && connection_.reliable;
  if (type_ != QpType::kXrcReceive) {
    requester_ = std::make_unique<Requester>(send_queue_, *domain_, *memory_, connection_, qpn_, config.observer,
                                             config.windows);
  }
  if (type_ == QpType::kXrcReceive) {
    responder_ = std::make_unique<Responder>(*config.xrc, connection_, qpn_, config.observer);
  } else if (type_ != QpType::kXrcSend) {
    responder_ =
        std::make_unique<Responder>(Reach{domain_, memory_, config.windows}, connection_, qpn_, config.observer);
  }
}

std::optional<QpEvent> QueuePair::poll_event() noexcept {
  const std::uint32_t pending = events_.load(std::memory_order_relaxed);
  if (pending == 0) return std::nullopt;
  const auto event = static_cast<QpEvent>(std::countr_zero(pending));
  const std::uint32_t bit = 1U << static_cast<unsigned>(event);
  if ((events_.fetch_and(~bit, std::memory_order_relaxed) & bit) == 0) return std::nullopt;  // another thread told it
  return event;
}

void QueuePair::raise(QpEvent event) noexcept {
  events_.fetch_or(1U << static_cast<unsigned>(event), std::memory_order_relaxed);
}

Status QueuePair::modify(const QpAttributes& attributes, AttrMask mask, const PortView& port) {
  settle_send();
  const QpState from = state();
  const QpState to = (mask & kAttrState) != 0 ? attributes.state : from;
  if (check_transition(type_, from, to, mask) != 0) {
    const QpEdge& edge = edge_of(type_, from, to);
    if (!edge.valid) return refuse(step_name(type_, from, to) + " is no step of its life");
    return refuse(step_name(type_, from, to) + ": attribute mask " + std::to_string(mask) + " must hold " +
                  std::to_string(edge.required) + " and may hold " + std::to_string(edge.optional));
  }
  if ((mask & kAttrCurrentState) != 0 && attributes.current_state != from) {
    return refuse("queue pair is in " + std::string(name_of(from)) + ", not in " +
                  std::string(name_of(attributes.current_state)));
  }
  const bool ends = to == QpState::kError || to == QpState::kReset;
  if (from == QpState::kSendQueueDrained && !ends && send_queue_.on_their_way() != 0) {
    return refuse("send queue is still draining");
  }
  const auto overrun = [](const CompletionSink* sink) { return sink != nullptr && sink->overrun(); };
  if (from == QpState::kReset && to == QpState::kInit &&
      (overrun(send_completions_) || overrun(receive_completions_))) {
    return refuse(
        "a completion queue of the queue pair was overrun and takes no completion any more: destroy both and make a "
        "larger one");
  }
  if (Status status = check_attributes(attributes, mask, port); !status) return status;
  if (is_connected()) {
    if (Status status = prepare_connection(to, attributes, mask, port); !status) return status;
  }
  apply(attributes, mask, port);
  enter(from, to);
  return {};
}

Status QueuePair::check_attributes(const QpAttributes& attributes, AttrMask mask, const PortView& port) const {
  if ((mask & kAttrPort) != 0 && attributes.port != port.number) {
    return refuse(why_not(attributes.port, port, "the queue pair"));
  }
  const std::uint16_t pkey_index = (mask & kAttrPkeyIndex) != 0 ? attributes.pkey_index : attributes_.pkey_index;
  if ((mask & (kAttrPkeyIndex | kAttrPort)) != 0 && !port.pkey_at(pkey_index)) {
    return refuse("P_Key index " + std::to_string(pkey_index) + " is empty, or outside the table of " +
                  std::to_string(port.pkey_count()) + " entries");
  }
  if ((mask & kAttrPort) != 0 && sends_frames() && port.link_layer == LinkLayer::kInfiniband) {
    return refuse("port " + std::to_string(port.number) +
                  " is of InfiniBand, where there are no Ethernet frames: a raw packet queue pair needs a RoCE port");
  }
  if ((mask & kAttrRateLimit) != 0 && attributes.rate_limit != 0 && attributes.rate_limit < kLeastRateLimit) {
    return refuse("rate_limit " + std::to_string(attributes.rate_limit) + " kbit/s is below the least there is, " +
                  std::to_string(kLeastRateLimit) + "; 0 is none");
  }
  if ((mask & kAttrAlternatePath) != 0) return refuse("the device has no alternate path");
  if ((mask & kAttrAccessFlags) != 0 && (attributes.access & ~kKnownAccess) != 0) {
    return refuse("access flags hold a bit that verbs does not define");
  }
  if ((mask & kAttrDestinationQpn) != 0 && attributes.destination_qpn > Qpn::kMask) {
    return refuse("destination QPN " + std::to_string(attributes.destination_qpn) + " has more than 24 bits");
  }
  if (Status status = check_ranges(attributes, mask); !status) return status;
  if ((mask & kAttrPathMtu) != 0) {
    const auto mtu = wire::mtu_of_number(attributes.path_mtu);
    if (!mtu || wire::byte_count(*mtu) > port.mtu) {
      return refuse("path MTU is above the " + std::to_string(port.mtu) + " bytes of the port");
    }
  }
  if ((mask & kAttrAddressVector) != 0) {
    const Result<AddressHandle> path = validate(attributes.address, port, domain_);
    if (!path) return tl::make_unexpected(path.error());
  }
  return {};
}

void QueuePair::apply(const QpAttributes& attributes, AttrMask mask, const PortView& port) noexcept {
  const auto take = [&](AttrMask bit, auto field) {
    if ((mask & bit) != 0) attributes_.*field = attributes.*field;
  };
  take(kAttrAccessFlags, &QpAttributes::access);
  take(kAttrPkeyIndex, &QpAttributes::pkey_index);
  take(kAttrPort, &QpAttributes::port);
  take(kAttrQkey, &QpAttributes::qkey);
  take(kAttrAddressVector, &QpAttributes::address);
  take(kAttrDestinationQpn, &QpAttributes::destination_qpn);
  take(kAttrReceivePsn, &QpAttributes::receive_psn);
  take(kAttrSendPsn, &QpAttributes::send_psn);
  take(kAttrRateLimit, &QpAttributes::rate_limit);
  for (const RangeRow& row : kRanges) take(row.bit, row.field);
  attributes_.sqd_async_notify = (mask & kAttrSqdAsyncNotify) != 0 && attributes.sqd_async_notify;
  attributes_.receive_psn &= Psn::kMask;
  attributes_.send_psn &= Psn::kMask;
  if ((mask & kAttrPort) != 0) {
    mtu_ = sends_frames() ? port.frame_size : port.mtu;
    port_ = port.number;
  }
  if ((mask & (kAttrPkeyIndex | kAttrPort)) != 0) connection_.pkey = Pkey(*port.pkey_at(attributes_.pkey_index));
  if ((mask & kAttrRateLimit) != 0) frame_period_ = byte_period(std::uint64_t{attributes.rate_limit} * 1000);
  if ((mask & kAttrQkey) != 0) qkey_ = Qkey(attributes.qkey);
  if ((mask & kAttrSendPsn) != 0) next_psn_ = Psn(attributes.send_psn);
  if (!is_connected()) return;
  if ((mask & kAttrPathMtu) != 0) connection_.mtu = wire::byte_count(*wire::mtu_of_number(attributes.path_mtu));
  connection_.destination = Qpn(attributes_.destination_qpn);
  connection_.access = attributes_.access;
  connection_.ack_timeout = ack_timeout(attributes_.timeout);
  connection_.retry_count = attributes_.retry_count;
  connection_.rnr_retry = attributes_.rnr_retry;
  connection_.max_rd_atomic = attributes_.max_rd_atomic;
  connection_.max_dest_rd_atomic = attributes_.max_dest_rd_atomic;
  connection_.min_rnr_timer = attributes_.min_rnr_timer;
  if (requester_ != nullptr) requester_->on_path();
  if (responder_ != nullptr) responder_->on_path();
}

// What of a step can fail: the path, and the memory for what the other end may ask.
Status QueuePair::prepare_connection(QpState to, const QpAttributes& attributes, AttrMask mask, const PortView& port) {
  std::optional<AddressHandle> path;
  if ((mask & kAttrAddressVector) != 0) {
    Result<AddressHandle> valid = validate(attributes.address, port, domain_);
    if (!valid) return tl::make_unexpected(valid.error());
    if (wire::is_multicast_lid(valid->envelope.link.destination_lid)) {
      return refuse("LID " + std::to_string(attributes.address.destination_lid) +
                    " is of a multicast group: a connection goes to one port");
    }
    path = *valid;
  }
  if (Status status = prepare_responder(to, attributes, mask); !status) return status;
  if (!path) return {};
  connection_.envelope = path->envelope;
  connection_.byte_period = path->byte_period;
  const Qpn destination((mask & kAttrDestinationQpn) != 0 ? attributes.destination_qpn : attributes_.destination_qpn);
  connection_.envelope.source_port = wire::source_port(attributes.address.flow_label, qpn_, destination);
  if (connection_.minds_congestion()) {
    std::uint8_t& traffic_class = connection_.envelope.traffic_class;
    traffic_class = static_cast<std::uint8_t>((traffic_class & ~kEcnMask) | kEcnCapable);
  }
  connection_.cnp_envelope = connection_.envelope;
  connection_.cnp_envelope.traffic_class = kCnpTrafficClass;
  return {};
}

// Room for the reads that the other end may have open.
Status QueuePair::prepare_responder(QpState to, const QpAttributes& attributes, AttrMask mask) {
  if (responder_ == nullptr) return {};
  const std::uint8_t before = connection_.max_dest_rd_atomic;
  try {
    if (to == QpState::kReadyToReceive) {
      connection_.max_dest_rd_atomic = (mask & kAttrMaxDestRdAtomic) != 0 ? attributes.max_dest_rd_atomic : 0;
      responder_->start(Psn(attributes.receive_psn));
    } else if ((mask & kAttrMaxDestRdAtomic) != 0) {
      responder_->grow(attributes.max_dest_rd_atomic);
    }
  } catch (const std::bad_alloc&) {
    connection_.max_dest_rd_atomic = before;
    return failure(ErrorCode::kExhausted,
                   "no memory for " + std::to_string(attributes.max_dest_rd_atomic) + " reads of the other end",
                   ENOMEM);
  }
  return {};
}

void QueuePair::enter(QpState from, QpState to) noexcept {
  if (to == QpState::kReset) {
    reset();
    return;
  }
  if (to == QpState::kReadyToSend && requester_ != nullptr) {
    if (from == QpState::kReadyToReceive) requester_->start(Psn(attributes_.send_psn));
    if (from == QpState::kSendQueueError) requester_->resume();
  }
  state_.store(to, std::memory_order_relaxed);
  if (to == QpState::kError) {
    flush_send();
    settle_receive();
  } else if (to == QpState::kSendQueueDrained && from == QpState::kReadyToSend) {
    drain_event_wanted_ = attributes_.sqd_async_notify;
    raise_if_drained();
  }
}

void QueuePair::reset() noexcept {
  state_.store(QpState::kReset, std::memory_order_relaxed);
  events_.store(0, std::memory_order_relaxed);
  send_queue_.clear();
  receive_queue_.clear();
  attributes_ = {};
  qkey_ = {};
  next_psn_ = {};
  pacer_ = {};
  frame_period_ = 0;
  fault_status_ = WcStatus::kSuccess;
  drain_event_wanted_ = false;
  established_ = receives_flushed_ = false;
  notification_.reset();
  if (requester_ != nullptr) requester_->reset();
  if (responder_ != nullptr) responder_->reset();
}

void QueuePair::give_back_all() noexcept {
  send_queue_.give_back_all();
  receives_given_back_.position.store(receive_queue_.popped(), std::memory_order_relaxed);
}

void QueuePair::fail() noexcept {
  const QpState from = state();
  if (from == QpState::kReset || from == QpState::kError) return;
  raise(QpEvent::kFatal);
  enter(from, QpState::kError);
}

QpAttributes QueuePair::query() const noexcept {
  QpAttributes answer = attributes_;
  answer.state = answer.current_state = state();
  answer.capabilities = capabilities_;
  answer.send_queue_draining = answer.state == QpState::kSendQueueDrained && send_queue_.on_their_way() != 0;
  return answer;
}

}  // namespace verbena::engine
