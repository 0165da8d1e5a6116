#include "device/raw_port.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "device/clock.h"
#include "device/queue_pair.h"
#include "device/rcu.h"
#include "wire/ethernet_frame.h"

namespace verbena::device {
namespace {

using transport::FrameReach;

constexpr wire::MacAddress kWholeMac{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

// What the interface must let through so that the rule can see it.
FrameReach reach_of(const engine::FlowRule& rule) noexcept {
  switch (rule.kind) {
    case engine::FlowKind::kSniffer:
    case engine::FlowKind::kAllDefault:
      return {FrameReach::Kind::kEverything, {}};
    case engine::FlowKind::kGroupDefault:
      return {FrameReach::Kind::kAllGroups, {}};
    case engine::FlowKind::kNormal:
      break;
  }
  const wire::MacAddress& mac = rule.value.destination;
  if (rule.mask.destination != kWholeMac || mac == kWholeMac) return {};
  return {is_group(mac) ? FrameReach::Kind::kGroup : FrameReach::Kind::kAddress, mac.bytes};
}

}  // namespace

Result<std::unique_ptr<RawPort>> RawPort::open(Port& port, const QpTable& queue_pairs, transport::ForkSet& forks) {
  auto sender = transport::PacketSender::open(port.interface_index(), port.counters(), forks);
  if (!sender && sender.error().code != ErrorCode::kNotFound) return tl::make_unexpected(sender.error());
  return std::unique_ptr<RawPort>(new RawPort(port, queue_pairs, forks, sender ? std::move(*sender) : nullptr));
}

RawPort::RawPort(Port& port, const QpTable& queue_pairs, transport::ForkSet& forks,
                 std::unique_ptr<transport::PacketSender> sender)
    : port_(port), queue_pairs_(queue_pairs), forks_(forks), sender_(sender.release()) {}

RawPort::~RawPort() {
  stop_listening();
  delete sender_.load(std::memory_order_relaxed);
}

transport::SendResult RawPort::send(std::span<const transport::Outgoing> batch, Instant now) noexcept {
  auto* const sender = sender_.load(std::memory_order_acquire);
  if (sender != nullptr) return sender->send(batch, now);
  port_.counters().count(Drop::kPortDown, batch.size());
  return {.taken = batch.size(), .full = false};
}

int RawPort::fd() const noexcept {
  const auto* const listener = listener_.load(std::memory_order_relaxed);
  return listener == nullptr ? -1 : listener->fd();
}

void RawPort::stop_listening() noexcept {
  delete listener_.exchange(nullptr, std::memory_order_relaxed);
}

std::unique_ptr<RawPort::Steering> RawPort::prepared(const engine::FlowTable& table) {
  auto made = std::make_unique<Steering>();
  made->table = table;
  made->recipients.reserve(table.size());
  return made;
}

Status RawPort::add(std::uint64_t id, Qpn qpn, const engine::FlowRule& rule) {
  engine::FlowTable table = steering_.now().table;
  if (table.size() >= engine::FlowTable::kMost) {
    return failure(ErrorCode::kExhausted,
                   fmt::format("{}: it has {} flows, and each frame asks one after the other: more are not possible",
                               port_.name(), table.size()),
                   ENOMEM);
  }
  table.add(id, qpn, rule);
  auto next = prepared(table);
  auto twin = prepared(table);
  const Reached reached{id, reach_of(rule)};
  reached_.reserve(reached_.size() + 1);
  std::unique_ptr<transport::PacketListener> opened;
  auto* listener = listener_.load(std::memory_order_relaxed);
  if (listener == nullptr) {
    auto first = transport::PacketListener::open(port_.interface_index(), port_.counters(), forks_);
    if (!first) return tl::make_unexpected(first.error());
    opened = std::move(*first);
    listener = opened.get();
  }
  if (auto done = listener->reach(reached.reach); !done) return done;
  reached_.push_back(reached);
  steering_.replace(std::move(next), std::move(twin));
  if (opened != nullptr) listener_.store(opened.release(), std::memory_order_release);
  return {};
}

void RawPort::remove(std::uint64_t id) noexcept {
  steering_.change([id](Steering& steering) { steering.table.remove(id); });
  auto* const listener = listener_.load(std::memory_order_relaxed);
  for (const Reached& reached : reached_) {
    if (reached.id == id && listener != nullptr) listener->leave(reached.reach);
  }
  std::erase_if(reached_, [id](const Reached& reached) { return reached.id == id; });
}

Status RawPort::reopen(unsigned interface_index) {
  Status result;
  auto sender = transport::PacketSender::open(interface_index, port_.counters(), forks_);
  if (!sender) result = tl::make_unexpected(sender.error());
  Result<std::unique_ptr<transport::PacketListener>> listener;
  if (fd() >= 0) listener = transport::PacketListener::open(interface_index, port_.counters(), forks_);
  if (!listener) result = tl::make_unexpected(listener.error());
  if (listener && *listener != nullptr) {
    for (const Reached& reached : reached_) {
      if (auto done = (*listener)->reach(reached.reach); !done) result = done;
    }
  }
  // Nothing throws from here on: those before must outlast their readers.
  if (sender) sender->reset(sender_.exchange(sender->release(), std::memory_order_acq_rel));
  if (listener && *listener != nullptr) {
    listener->reset(listener_.exchange(listener->release(), std::memory_order_acq_rel));
  }
  wait_for_readers();
  return result;
}

std::size_t RawPort::receive(std::size_t budget, bool patient, bool& held_back) noexcept {
  auto* const listener = listener_.load(std::memory_order_acquire);
  if (listener == nullptr) return 0;
  patient_ = patient;
  held_back_ = false;
  const std::size_t count = listener->receive(*this, budget);
  held_back = held_back || held_back_;
  return count;
}

bool RawPort::is_coalesced(std::size_t size) const noexcept {
  return size > port_.snapshot().interface_mtu + wire::kEthernetSize + 2 * wire::kVlanTagSize;
}

transport::Receipt RawPort::on_frame(transport::ConstBytes frame) noexcept {
  const auto fields = wire::read_frame(frame);
  if (!fields) return transport::Receipt::kTaken;
  const Steering& steering = steering_.read();
  auto& recipients = steering.recipients;
  recipients.clear();
  const bool dropped = steering.table.steer(*fields, [&](Qpn qpn) { recipients.push_back(qpn); });
  const transport::Receipt receipt = deliver(frame, recipients);
  // One that waits is asked about again.
  if (dropped && receipt == transport::Receipt::kTaken) port_.counters().count(Drop::kDroppedByFlow);
  return receipt;
}

transport::Receipt RawPort::deliver(transport::ConstBytes frame, std::span<const Qpn> recipients) noexcept {
  if (recipients.empty()) return transport::Receipt::kTaken;  // the host's, and nobody's here
  if (is_coalesced(frame.size())) {
    port_.counters().count(Drop::kFrameCoalesced);
    return transport::Receipt::kTaken;
  }
  for (const Qpn qpn : recipients) {
    auto* const queue_pair = queue_pairs_.find(qpn);
    if (queue_pair == nullptr || &queue_pair->port() != &port_) continue;
    const Drop drop = queue_pair->receive_frame(frame);
    if (drop == Drop::kNone) continue;
    // Only one that goes to nobody else can wait.
    if (drop == Drop::kNoReceiveRequest && recipients.size() == 1 && queue_pair->would_rather_wait(now(), patient_)) {
      held_back_ = true;
      return transport::Receipt::kLater;
    }
    port_.counters().count(drop);
  }
  return transport::Receipt::kTaken;
}

}  // namespace verbena::device
