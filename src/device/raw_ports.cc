#include "device/raw_ports.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "device/helper.h"
#include "device/log.h"
#include "device/port.h"
#include "device/raw_port.h"

namespace verbena::device {

RawUse::~RawUse() {
  if (owner_ != nullptr) owner_->give_up(*port_);
}

RawPorts::RawPorts(std::mutex& control, Helper& helper, const QpTable& queue_pairs)
    : control_(control), helper_(helper), queue_pairs_(queue_pairs) {}

RawPorts::~RawPorts() {
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

void RawPorts::end_listening(RawPort& port) noexcept {
  helper_.remove_packets(port.fd());
  listening_.change([&port](Listening& listening) { std::erase(listening, &port); });
  port.stop_listening();
}

Result<std::uint64_t> RawPorts::add_flow(Port& port, Qpn qpn, const engine::FlowRule& rule) {
  const std::lock_guard guard(control_);
  RawPort& raw = *find(port)->port;
  std::unique_ptr<Listening> next;
  std::unique_ptr<Listening> twin;
  if (raw.fd() < 0) {
    next = std::make_unique<Listening>(listening_.now());
    next->push_back(&raw);
    twin = std::make_unique<Listening>(*next);
  }
  const std::uint64_t id = ++last_flow_;
  if (auto added = raw.add(id, qpn, rule); !added) return tl::make_unexpected(added.error());
  if (next == nullptr) return id;
  if (auto watched = helper_.add_packets(raw.fd()); !watched) {
    raw.remove(id);
    raw.stop_listening();
    return tl::make_unexpected(watched.error());
  }
  listening_.replace(std::move(next), std::move(twin));
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

void RawPorts::reopen(const Port& port, unsigned interface_index) {
  Entry* const entry = find(port);
  if (entry == nullptr) return;
  RawPort& raw = *entry->port;
  const bool listens = raw.fd() >= 0;
  if (listens) helper_.remove_packets(raw.fd());
  Status reopened = raw.reopen(interface_index);
  if (listens) {
    if (auto watched = helper_.add_packets(raw.fd()); !watched) reopened = watched;
  }
  if (reopened) return;
  log(Severity::kWarning,
      fmt::format("{}: {} Until the interface is made anew again its raw packet queue pairs lack frames.", port.name(),
                  reopened.error().message));
}

std::size_t RawPorts::receive(std::size_t budget, bool patient, bool& held_back) noexcept {
  std::size_t count = 0;
  for (RawPort* const port : listening_.read()) {
    count += port->receive(budget, patient, held_back);
  }
  return count;
}

void RawPorts::abandon() noexcept {
  abandoned_ = true;
  forks_.close_all();
}

}  // namespace verbena::device
