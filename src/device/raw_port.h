// A port as its raw packet queue pairs have it in this process: the socket that their frames leave by and, as long as
// there are flows, the one that frames arrive by, with the rules that say whose each is. Where the interface is made
// anew, so are they.
//
// Thread-safety: send(): any thread. receive(): one thread at a time; both inside an RCU read section. The rest: under
//                the runtime's control lock.
// Ownership:     owns its sockets; keeps references to the port and the table of queue pairs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/qpn.h"
#include "device/port.h"
#include "device/published.h"
#include "device/qp_table.h"
#include "engine/flow_rule.h"
#include "engine/flow_table.h"
#include "transport/datagram.h"
#include "transport/fork_set.h"
#include "transport/packet/packet_listener.h"
#include "transport/packet/packet_sender.h"
#include "verbena/result.h"

namespace verbena::device {

class RawPort final : private transport::FrameReceiver {
 public:
  // kPermission (EPERM) without CAP_NET_RAW; kUnsupported (EOPNOTSUPP) where the interface has no Ethernet frames. One
  // that is gone at present is no error: what is sent finds the port down until reopen().
  static Result<std::unique_ptr<RawPort>> open(Port& port, const QpTable& queue_pairs, transport::ForkSet& forks);
  ~RawPort();

  Port& port() noexcept { return port_; }
  transport::SendResult send(std::span<const transport::Outgoing> batch, Instant now) noexcept;

  // Adds a rule; the first one makes the port listen. `id` names it in remove(). ENOMEM where there are
  // FlowTable::kMost, ENODEV where the interface is gone; then, and where it throws std::bad_alloc, all is as before.
  Status add(std::uint64_t id, Qpn qpn, const engine::FlowRule& rule);
  void remove(std::uint64_t id) noexcept;
  bool has_rule_of(Qpn qpn) const noexcept { return steering_.now().table.has_rule_of(qpn); }
  bool has_rules() const noexcept { return !steering_.now().table.empty(); }
  // The descriptor that frames arrive by; -1: not listening.
  int fd() const noexcept;
  // Requires: nobody calls receive() any more.
  void stop_listening() noexcept;
  // The port is on another interface now, or on its own again: it sends there, and listens where it did so before, for
  // all its rules. What fails stays as it was, and the last such failure is returned.
  Status reopen(unsigned interface_index);

  // Hands up to about `budget` frames to their queue pairs, and returns how many there were. A frame that finds no
  // receive waits as a datagram does (inbound.h): `held_back` is set then.
  std::size_t receive(std::size_t budget, bool patient, bool& held_back) noexcept;

 private:
  struct Steering {
    engine::FlowTable table;
    mutable std::vector<Qpn> recipients;  // of the frame at hand; the receiving thread's, with room for all
  };
  struct Reached {
    std::uint64_t id;
    transport::FrameReach reach;
  };

  RawPort(Port& port, const QpTable& queue_pairs, transport::ForkSet& forks,
          std::unique_ptr<transport::PacketSender> sender);
  transport::Receipt deliver(transport::ConstBytes frame, std::span<const Qpn> recipients) noexcept;
  transport::Receipt on_frame(transport::ConstBytes frame) noexcept override;
  bool is_coalesced(std::size_t size) const noexcept;
  static std::unique_ptr<Steering> prepared(const engine::FlowTable& table);

  Port& port_;
  const QpTable& queue_pairs_;
  transport::ForkSet& forks_;
  // Owned, nullptr for none. Published by release under the control lock, read by acquire inside RCU read sections.
  std::atomic<transport::PacketSender*> sender_;
  std::atomic<transport::PacketListener*> listener_{nullptr};
  std::vector<Reached> reached_;  // what the interface lets through for rules
  Published<Steering> steering_;
  // Of the receive() that is going on.
  bool patient_ = false;
  bool held_back_ = false;
};

}  // namespace verbena::device
