#include "sim/station.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "wire/icrc.h"
#include "wire/mtu.h"

namespace verbena::sim {
namespace {

using namespace engine;

constexpr std::uint32_t kFirstQpn = 0x20001;
constexpr std::uint32_t kFirstReceiverQpn = 0x20801;  // of XRC
constexpr std::uint32_t kDatagramQpn = 0x20c01;
constexpr std::uint8_t kFamily = 1;  // the index of the IPv4 GID
constexpr AccessFlags kGranted =
    kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic | kFlushGlobal | kFlushPersistent;
constexpr std::uint64_t kDigestPrime = 0x100000001b3;

// What the ICRC covers in front of the packet: the same for every packet here, since the network leaves it alone.
std::span<const std::byte> network_header() {
  static const std::vector<std::byte> kHeader(28, std::byte{0x45});
  return kHeader;
}

std::uint8_t mtu_number(std::uint32_t bytes) {
  for (std::uint8_t number = 1; number <= 5; ++number) {
    if (wire::byte_count(*wire::mtu_of_number(number)) == bytes) return number;
  }
  throw std::invalid_argument("no MTU of " + std::to_string(bytes));
}

}  // namespace

Station::Station(std::uint8_t number, Network& network, std::size_t memory)
    : is_first_(number == 1), host_(number, 4096), network_(network), memory_(memory, kGuard) {
  local_ = host_.region_of(memory_.data(), memory_.size(), kLocalWrite);
  static_cast<void>(host_.memory().insert(local_));
  network.connect(host_.gid(kFamily), [this](const Datagram& datagram, Instant now) { on_datagram(datagram, now); });
}

void Station::add_connection(const Agreement& agreement, bool shared) {
  QpConfig config = host_.config(kFirstQpn + static_cast<std::uint32_t>(ends_.size()), agreement.type);
  config.send_completions = &send_completions_;
  config.receive_completions = &receive_completions_;
  config.capabilities = {agreement.depth, agreement.depth, 8, 8, 200};
  config.signal_all = agreement.signal_all;
  config.observer = this;
  config.minds_congestion = agreement.minds_congestion;
  config.repeats_selectively = is_first_ ? agreement.first_repeats : agreement.second_repeats;
  if (shared) config.shared_receives = &shared_;
  std::unique_ptr<QueuePair> receiver;
  if (agreement.is_xrc()) {
    const auto number = kFirstReceiverQpn + static_cast<std::uint32_t>(ends_.size());
    QpConfig receiving = host_.config(number, QpType::kXrcReceive);
    receiving.observer = this;
    receiving.repeats_selectively = config.repeats_selectively;
    receiver = std::make_unique<QueuePair>(receiving);
    XrcTarget target = host_.xrc_target();
    target.receives = &shared_;
    target.completions = &receive_completions_;
    host_.xrc().add(engine::testing::kSharedQueue, target);
  }
  ends_.push_back({agreement, shared, std::make_unique<QueuePair>(config), std::move(receiver)});
  ends_.back().qp->set_window(agreement.window);
}

void Station::connect(std::size_t connection, Station& peer) {
  const End& end = ends_[connection];
  const End& other = peer.ends_[connection];
  connect(*end.qp, end.agreement, peer, other.receiving()->qpn());
  if (end.receiver != nullptr) connect(*end.receiver, end.agreement, peer, other.qp->qpn());
}

void Station::connect(QueuePair& qp, const Agreement& agreed, Station& peer, Qpn destination) {
  const bool is_lower = host_.gid(kFamily) < peer.host_.gid(kFamily);
  QpAttributes attributes;
  attributes.port = 1;
  attributes.path_mtu = mtu_number(agreed.mtu);
  attributes.access = kGranted;
  attributes.destination_qpn = destination.value();
  attributes.address = host_.address_of(peer.host_, kFamily).vector;
  attributes.send_psn = agreed.first_psn + (is_lower ? 0 : 3);
  attributes.receive_psn = agreed.first_psn + (is_lower ? 3 : 0);
  attributes.max_rd_atomic = attributes.max_dest_rd_atomic = agreed.max_reads;
  attributes.min_rnr_timer = agreed.rnr_timer;
  attributes.timeout = agreed.timeout;
  attributes.retry_count = agreed.retry_count;
  attributes.rnr_retry = agreed.rnr_retry;
  for (const QpState to : {QpState::kInit, QpState::kReadyToReceive, QpState::kReadyToSend}) {
    const AttrMask required = edge_of(qp.type(), qp.state(), to).required;
    const Status status = engine::testing::move_to(qp, to, host_.port(), required, attributes);
    if (!status) throw std::invalid_argument(status.error().message);
  }
}

void Station::add_datagrams() {
  QpConfig config = host_.config(kDatagramQpn);
  config.send_completions = &datagram_send_completions_;
  config.receive_completions = &datagram_receive_completions_;
  config.capabilities = {kDatagramDepth, kDatagramDepth, 2, 2, 200};
  datagrams_ = std::make_unique<QueuePair>(config);
  if (!engine::testing::bring_to(*datagrams_, QpState::kReadyToSend, host_.port())) {
    throw std::logic_error("a queue pair for datagrams does not come up");
  }
}

AddressHandle Station::datagram_address(const Station& peer) {
  return host_.address_of(peer.host_, kFamily);
}

std::optional<std::size_t> Station::connection_of(std::uint32_t qpn) const {
  const std::uint32_t first = qpn >= kFirstReceiverQpn ? kFirstReceiverQpn : kFirstQpn;
  if (qpn < first || qpn - first >= ends_.size()) return std::nullopt;
  return qpn - first;
}

std::span<std::byte> Station::take_memory(std::size_t size) {
  constexpr std::size_t kWord = 8;
  const std::size_t whole = (size + kWord - 1) / kWord * kWord + kGuardSize;
  if (memory_.size() - taken_ < whole) throw std::length_error("station has too little memory");
  const auto taken = std::span(memory_).subspan(taken_, whole);
  taken_ += whole;
  guards_.push_back(taken.subspan(size));
  return taken.first(size);
}

Station::Grant Station::grant(std::span<std::byte> bytes) {
  constexpr std::uint64_t kApart = 1ULL << 32;
  MemoryRegion region = host_.region_of(bytes.data(), bytes.size(), kGranted);
  region.iova = (granted_.size() + 1) * kApart;
  granted_.push_back(std::make_unique<MemoryRegion>(region));
  return {*host_.memory().insert(*granted_.back()), region.iova};
}

bool Station::guards_are_whole() const {
  return std::all_of(guards_.begin(), guards_.end(), [](std::span<const std::byte> guard) {
    return std::all_of(guard.begin(), guard.end(), [](std::byte byte) { return byte == kGuard; });
  });
}

// --- sending

void Station::send(std::optional<std::size_t> connection, const Transmit& packet, Instant now) {
  std::vector<std::byte> bytes = engine::testing::flatten(packet);
  if (watch_ && connection) {
    wire::Packet decoded;
    if (wire::decode_packet(bytes, false, decoded) == Drop::kNone) watch_(*connection, decoded);
  }
  const std::uint32_t icrc = wire::compute_icrc(network_header(), bytes);
  bytes.resize(bytes.size() + wire::kIcrcSize);
  wire::store_icrc(icrc, std::span(bytes).last<wire::kIcrcSize>());
  ++packets_;
  network_.send({*packet.envelope, std::move(bytes)}, now);
}

void Station::transmit_requests(std::size_t connection, Instant now, std::size_t budget) {
  QueuePair& qp = *ends_[connection].qp;
  std::array<Transmit, 16> batch;
  std::size_t count = 0;
  while (count < batch.size() && qp.poll_transmit(now, batch[count])) ++count;
  const std::size_t taken = std::min(count, budget);
  for (std::size_t i = 0; i < taken; ++i) send(connection, batch[i], now);
  qp.on_transmitted(taken);
  if (taken < count) qp.rewind_transmit();
}

void Station::transmit_responses(std::size_t connection, Instant now, std::size_t budget) {
  QueuePair& qp = *ends_[connection].receiving();
  std::array<Transmit, 16> batch;
  std::size_t count = 0;
  while (count < batch.size() && qp.poll_response(now, batch[count])) ++count;
  const std::size_t taken = std::min(count, budget);
  for (std::size_t i = 0; i < taken; ++i) send(connection, batch[i], now);
  qp.on_responded(taken);
  if (taken < count) qp.rewind_responses();
}

void Station::transmit_datagrams(Instant now, std::size_t budget) {
  std::array<Transmit, 16> batch;
  std::size_t count = 0;
  while (count < batch.size() && datagrams_->poll_transmit(now, batch[count])) ++count;
  const std::size_t taken = std::min(count, budget);
  for (std::size_t i = 0; i < taken; ++i) send(std::nullopt, batch[i], now);
  datagrams_->on_transmitted(taken);
  if (taken < count) datagrams_->rewind_transmit();
}

void Station::transmit(Instant now, std::mt19937_64& random, bool always_room) {
  constexpr std::size_t kWide = 24;  // more often than not the whole batch has room
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    if (ends_[i].receiving()->has_responses()) transmit_responses(i, now, always_room ? kWide : random() % kWide);
    if (ends_[i].qp->has_untransmitted()) transmit_requests(i, now, always_room ? kWide : random() % kWide);
  }
  if (datagrams_ && datagrams_->has_untransmitted()) transmit_datagrams(now, always_room ? kWide : random() % kWide);
}

void Station::run_timers(Instant now) {
  for (End& end : ends_) {
    const auto due = end.qp->next_timeout();
    if (!due || *due > now) continue;
    end.qp->on_timeout(now);
    end.qp->settle_receive();
  }
}

std::optional<Instant> Station::next_timer() const {
  std::optional<Instant> first;
  for (const End& end : ends_) {
    const auto due = end.qp->next_timeout();
    if (due && (!first || *due < *first)) first = due;
  }
  return first;
}

std::optional<Instant> Station::next_departure() const {
  std::optional<Instant> first;
  const auto consider = [&first](std::optional<Instant> due) {
    if (due && (!first || *due < *first)) first = due;
  };
  for (const End& end : ends_) {
    consider(end.qp->next_departure());
    consider(end.qp->next_response());
  }
  return first;
}

const Gid& Station::address() const {
  return host_.gid(kFamily);
}

bool Station::has_work() const {
  if (datagrams_ && datagrams_->has_untransmitted()) return true;
  return std::any_of(ends_.begin(), ends_.end(),
                     [](const End& end) { return end.qp->has_untransmitted() || end.receiving()->has_responses(); });
}

// --- receiving

void Station::on_datagram(const Datagram& datagram, Instant now) {
  for (const std::byte byte : datagram.bytes) {
    digest_ = (digest_ ^ std::to_integer<std::uint64_t>(byte)) * kDigestPrime;
  }
  digest_ = (digest_ ^ static_cast<std::uint64_t>(now.ns)) * kDigestPrime;
  ++drops_[static_cast<std::size_t>(deliver(datagram, now))];
}

Drop Station::deliver(const Datagram& datagram, Instant now) {
  const std::span<const std::byte> bytes = datagram.bytes;
  if (bytes.size() < wire::kIcrcSize) return Drop::kTruncated;
  const std::uint32_t told = wire::load_icrc(bytes.last<wire::kIcrcSize>());
  const std::uint32_t computed = wire::compute_icrc(network_header(), bytes.first(bytes.size() - wire::kIcrcSize));
  if (told != computed) return Drop::kIcrcMismatch;
  wire::Packet packet;
  if (const Drop drop = wire::decode_packet(bytes, true, packet); drop != Drop::kNone) return drop;
  if (datagrams_ && packet.bth.destination_qpn == datagrams_->qpn()) {
    const Drop drop = datagrams_->on_packet(packet, datagram.envelope, bytes.size(), now);
    datagrams_delivered_ += drop == Drop::kNone ? 1U : 0U;
    return drop;
  }
  const auto connection = connection_of(packet.bth.destination_qpn.value());
  if (!connection) return Drop::kUnknownQpn;
  const End& end = ends_[*connection];
  const bool is_for_receiver = packet.bth.destination_qpn == end.receiving()->qpn();
  QueuePair& qp = is_for_receiver ? *end.receiving() : *end.qp;
  Drop drop = Drop::kNone;
  if (wire::row_of(packet.bth.opcode).is_response()) {
    drop = qp.on_response(packet, datagram.envelope, now);
    qp.settle_receive();
  } else if (packet.bth.opcode == wire::Opcode::kCnp) {
    drop = qp.on_cnp(packet, datagram.envelope, now);
    qp.slow_answers(now);
  } else {
    drop = qp.on_packet(packet, datagram.envelope, bytes.size(), now);
    qp.settle_send();
  }
  return drop;
}

}  // namespace verbena::sim
