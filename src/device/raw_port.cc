#include "device/raw_port.h"

#include <algorithm>
#include <utility>

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
  auto sender = transport::PacketSender::open(port.identity().interface_index, port.counters(), forks);
  if (!sender) return tl::make_unexpected(sender.error());
  return std::unique_ptr<RawPort>(new RawPort(port, queue_pairs, forks, std::move(*sender)));
}

RawPort::RawPort(Port& port, const QpTable& queue_pairs, transport::ForkSet& forks,
                 std::unique_ptr<transport::PacketSender> sender)
    : port_(port), queue_pairs_(queue_pairs), forks_(forks), sender_(std::move(sender)), steering_(new Steering) {}

RawPort::~RawPort() {
  delete steering_.load(std::memory_order_relaxed);
}

std::unique_ptr<const RawPort::Steering> RawPort::prepared(engine::FlowTable table) {
  auto next = std::make_unique<Steering>();
  std::size_t rules = 0;
  table.for_each_rule([&rules](const engine::FlowRule&) { ++rules; });
  next->table = std::move(table);
  next->recipients.reserve(rules);
  return next;
}

void RawPort::publish(std::unique_ptr<const Steering> next) noexcept {
  const std::unique_ptr<const Steering> before(steering_.exchange(next.release(), std::memory_order_acq_rel));
  wait_for_readers();
}

Status RawPort::add(std::uint64_t id, Qpn qpn, const engine::FlowRule& rule) {
  if (listener_ == nullptr) {
    auto listener = transport::PacketListener::open(port_.identity().interface_index, port_.counters(), forks_);
    if (!listener) return tl::make_unexpected(listener.error());
    listener_ = std::move(*listener);
  }
  engine::FlowTable table = steering_.load(std::memory_order_relaxed)->table;
  table.add(id, qpn, rule);
  auto next = prepared(std::move(table));
  const Reached reached{id, reach_of(rule)};
  reached_.reserve(reached_.size() + 1);
  if (auto done = listener_->reach(reached.reach); !done) return done;
  reached_.push_back(reached);
  publish(std::move(next));
  return {};
}

void RawPort::remove(std::uint64_t id) {
  engine::FlowTable table = steering_.load(std::memory_order_relaxed)->table;
  table.remove(id);
  publish(prepared(std::move(table)));
  for (const Reached& reached : reached_) {
    if (reached.id == id) listener_->leave(reached.reach);
  }
  std::erase_if(reached_, [id](const Reached& reached) { return reached.id == id; });
}

std::size_t RawPort::receive(std::size_t budget, bool patient, bool& held_back) noexcept {
  patient_ = patient;
  held_back_ = false;
  const std::size_t count = listener_->receive(*this, budget);
  held_back = held_back || held_back_;
  return count;
}

bool RawPort::is_coalesced(std::size_t size) const noexcept {
  return size > port_.snapshot().interface_mtu + wire::kEthernetSize + 2 * wire::kVlanTagSize;
}

transport::Receipt RawPort::on_frame(transport::ConstBytes frame) noexcept {
  const auto fields = wire::read_frame(frame);
  if (!fields) return transport::Receipt::kTaken;
  const Steering& steering = *steering_.load(std::memory_order_acquire);
  auto& recipients = steering.recipients;
  recipients.clear();
  if (steering.table.steer(*fields, [&](Qpn qpn) { recipients.push_back(qpn); })) {
    port_.counters().count(Drop::kDroppedByFlow);
  }
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
