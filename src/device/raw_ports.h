// Those ports of this process that have raw packet queue pairs, and their flows. A port without them costs nothing, and
// one whose queue pairs have no flows receives nothing.
//
// Thread-safety: receive(): one thread at a time, inside an RCU read section. The rest: any thread.
// Ownership:     owns the RawPorts; one lives as long as somebody uses it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/qpn.h"
#include "device/published.h"
#include "engine/flow_rule.h"
#include "transport/fork_set.h"
#include "verbena/result.h"

namespace verbena::device {

class Helper;
class Port;
class QpTable;
class RawPort;
class RawPorts;

// A port in use, until it is destroyed.
//
// Thread-safety: as a value.
class RawUse {
 public:
  RawUse() = default;
  RawUse(RawPorts& owner, RawPort& port) noexcept : owner_(&owner), port_(&port) {}
  RawUse(RawUse&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)), port_(other.port_) {}
  RawUse& operator=(RawUse&& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(port_, other.port_);
    return *this;
  }
  ~RawUse();

  bool empty() const noexcept { return owner_ == nullptr; }
  // Requires: not empty.
  RawPort* operator->() const noexcept { return port_; }

 private:
  RawPorts* owner_ = nullptr;
  RawPort* port_ = nullptr;
};

class RawPorts {
 public:
  RawPorts(std::mutex& control, Helper& helper, const QpTable& queue_pairs);
  ~RawPorts();
  RawPorts(const RawPorts&) = delete;
  RawPorts& operator=(const RawPorts&) = delete;

  // As RawPort::open().
  Result<RawUse> use(Port& port);
  // The name of the flow in remove_flow(). Requires: `port` is in use until then.
  Result<std::uint64_t> add_flow(Port& port, Qpn qpn, const engine::FlowRule& rule);
  void remove_flow(Port& port, std::uint64_t id) noexcept;
  bool has_flow_of(Qpn qpn) const;
  // `port` is on another interface now, or on its own again: RawPort::reopen() where it is in use. Says in the log what
  // fails. Requires: control_
  void reopen(const Port& port, unsigned interface_index);

  // Takes frames in, about `budget` of each port; how many. Sets `held_back` where one waits for its reader.
  std::size_t receive(std::size_t budget, bool patient, bool& held_back) noexcept;

  void abandon() noexcept;  // in the child of a fork

 private:
  friend class RawUse;
  struct Entry {
    std::unique_ptr<RawPort> port;
    unsigned users = 0;
  };
  using Listening = std::vector<RawPort*>;

  void give_up(RawPort& port) noexcept;
  Entry* find(const Port& port) noexcept;      // Requires: control_
  void end_listening(RawPort& port) noexcept;  // Requires: control_

  std::mutex& control_;  // that of the runtime, which a fork waits for
  Helper& helper_;
  const QpTable& queue_pairs_;
  transport::ForkSet forks_;
  std::vector<Entry> entries_;   // guarded by control_
  std::uint64_t last_flow_ = 0;  // guarded by control_
  bool abandoned_ = false;       // changes only in a child, before any of its code runs
  Published<Listening> listening_;
};

}  // namespace verbena::device
