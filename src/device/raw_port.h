// A port as its raw packet queue pairs have it in this process: the socket that their frames leave by and, as long as
// there are flows, the one that frames arrive by, with the rules that say whose each is.
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
  // kPermission (EPERM) without CAP_NET_RAW; kUnsupported (EOPNOTSUPP) where the interface has no Ethernet frames.
  static Result<std::unique_ptr<RawPort>> open(Port& port, const QpTable& queue_pairs, transport::ForkSet& forks);
  ~RawPort();

  Port& port() noexcept { return port_; }
  transport::SendResult send(std::span<const transport::Outgoing> batch, Instant now) noexcept {
    return sender_->send(batch, now);
  }

  // Adds a rule; the first one makes the port listen. `id` names it in remove().
  Status add(std::uint64_t id, Qpn qpn, const engine::FlowRule& rule);
  void remove(std::uint64_t id);
  bool has_rule_of(Qpn qpn) const noexcept { return steering_.load(std::memory_order_relaxed)->table.has_rule_of(qpn); }
  bool has_rules() const noexcept { return !steering_.load(std::memory_order_relaxed)->table.empty(); }
  // The descriptor that frames arrive by; -1: not listening.
  int fd() const noexcept { return listener_ == nullptr ? -1 : listener_->fd(); }
  // Requires: nobody calls receive() any more.
  void stop_listening() noexcept { listener_.reset(); }

  // Hands up to about `budget` frames to their queue pairs, and returns how many there were. A frame that finds no
  // receive waits as a datagram does (inbound.h): `held_back` is set then. Requires: it listens.
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
  transport::Receipt on_frame(transport::ConstBytes frame) noexcept override;
  bool is_coalesced(std::size_t size) const noexcept;
  static std::unique_ptr<const Steering> prepared(engine::FlowTable table);
  void publish(std::unique_ptr<const Steering> next) noexcept;

  Port& port_;
  const QpTable& queue_pairs_;
  transport::ForkSet& forks_;
  const std::unique_ptr<transport::PacketSender> sender_;
  std::unique_ptr<transport::PacketListener> listener_;
  std::vector<Reached> reached_;  // what the interface lets through for rules
  // Published by release under the control lock, read by acquire inside RCU read sections.
  std::atomic<const Steering*> steering_;
  // Of the receive() that is going on.
  bool patient_ = false;
  bool held_back_ = false;
};

}  // namespace verbena::device
