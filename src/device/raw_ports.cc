#include "device/raw_ports.h"

#include <algorithm>
#include <new>

#include "device/helper.h"
#include "device/raw_port.h"
#include "device/rcu.h"

namespace verbena::device {

RawUse::~RawUse() {
  if (owner_ != nullptr) owner_->give_up(*port_);
}

RawPorts::RawPorts(std::mutex& control, Helper& helper, const QpTable& queue_pairs)
    : control_(control), helper_(helper), queue_pairs_(queue_pairs), listening_(new Listening) {}

RawPorts::~RawPorts() {
  delete listening_.load(std::memory_order_relaxed);
  if (!abandoned_) return;
  // Their descriptors are closed, and the numbers may be somebody else's.
  for (Entry& entry : entries_) static_cast<void>(entry.port.release());
}

RawPorts::Entry* RawPorts::find(const Port& port) noexcept {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&port](const Entry& entry) { return &entry.port->port() == &port; });
  return found == entries_.end() ? nullptr : &*found;
}

Result<RawUse> RawPorts::use(Port& port) {
  const std::lock_guard guard(control_);
  Entry* entry = find(port);
  if (entry == nullptr) {
    auto opened = RawPort::open(port, queue_pairs_, forks_);
    if (!opened) return tl::make_unexpected(opened.error());
    entry = &entries_.emplace_back(Entry{std::move(*opened)});
  }
  ++entry->users;
  return RawUse(*this, *entry->port);
}

void RawPorts::give_up(RawPort& port) noexcept {
  if (abandoned_) return;
  const std::lock_guard guard(control_);
  Entry* const entry = find(port.port());
  if (--entry->users != 0) return;
  entries_.erase(entries_.begin() + (entry - entries_.data()));
}

void RawPorts::publish(std::unique_ptr<Listening> next) noexcept {
  const std::unique_ptr<const Listening> before(listening_.exchange(next.release(), std::memory_order_acq_rel));
  wait_for_readers();
}

Status RawPorts::begin_listening(RawPort& port) {
  auto next = std::make_unique<Listening>(*listening_.load(std::memory_order_relaxed));
  if (std::find(next->begin(), next->end(), &port) != next->end()) return {};
  next->push_back(&port);
  if (auto added = helper_.add_packets(port.fd()); !added) return added;
  publish(std::move(next));
  return {};
}

void RawPorts::end_listening(RawPort& port) {
  auto next = std::make_unique<Listening>(*listening_.load(std::memory_order_relaxed));
  std::erase(*next, &port);
  helper_.remove_packets(port.fd());
  publish(std::move(next));
  port.stop_listening();
}

Result<std::uint64_t> RawPorts::add_flow(Port& port, Qpn qpn, const engine::FlowRule& rule) {
  const std::lock_guard guard(control_);
  RawPort& raw = *find(port)->port;
  const std::uint64_t id = ++last_flow_;
  if (auto added = raw.add(id, qpn, rule); !added) {
    if (!raw.has_rules()) raw.stop_listening();
    return tl::make_unexpected(added.error());
  }
  if (auto listens = begin_listening(raw); !listens) {
    raw.remove(id);
    raw.stop_listening();
    return tl::make_unexpected(listens.error());
  }
  return id;
}

void RawPorts::remove_flow(Port& port, std::uint64_t id) noexcept {
  if (abandoned_) return;
  const std::lock_guard guard(control_);
  RawPort& raw = *find(port)->port;
  raw.remove(id);
  if (!raw.has_rules()) end_listening(raw);
}

bool RawPorts::has_flow_of(Qpn qpn) const {
  const std::lock_guard guard(control_);
  return std::any_of(entries_.begin(), entries_.end(),
                     [qpn](const Entry& entry) { return entry.port->has_rule_of(qpn); });
}

std::size_t RawPorts::receive(std::size_t budget, bool patient, bool& held_back) noexcept {
  std::size_t count = 0;
  for (RawPort* const port : *listening_.load(std::memory_order_acquire)) {
    count += port->receive(budget, patient, held_back);
  }
  return count;
}

void RawPorts::abandon() noexcept {
  abandoned_ = true;
  forks_.close_all();
}

}  // namespace verbena::device
