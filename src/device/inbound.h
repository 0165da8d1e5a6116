// From an arrived datagram to the queue pair it is for: decode, check, find, deliver; or hand over to the process that
// has the queue pair; or a named drop.
//
//   on_datagram ─> decode ─> multicast? ──> every attached queue pair of the port
//                       └──> QP 1? ───────> management datagrams
//                       └──> our slot? ───> the queue pair
//                       └──> other slot ──> the exchange (UDP brought it to the wrong process)
//
// A datagram that finds no posted receive is lost, as on hardware. But while the helper thread takes packets in because
// the application has not come to it (patient), it waits in its ring or socket for a moment: the application may only
// be waiting for a processor.
//
// Thread-safety: one thread at a time, inside an RCU read section.
// Ownership:     keeps references to parts of the runtime.
#pragma once

#include <atomic>

#include "base/drop.h"
#include "device/device_counters.h"
#include "device/management.h"
#include "device/port.h"
#include "device/put_off_events.h"
#include "device/qp_table.h"
#include "device/routes.h"
#include "engine/multicast_table.h"
#include "transport/datagram.h"
#include "transport/shm/exchange.h"
#include "transport/tap/tap.h"
#include "wire/packet.h"

namespace verbena::device {

class Inbound final : public transport::Receiver {
 public:
  Inbound(transport::Exchange& exchange, const QpTable& queue_pairs,
          const std::atomic<const engine::MulticastTable*>& groups, const std::atomic<const Routes*>& routes,
          Management& management, DeviceCounters& host_counters, transport::Tap* tap) noexcept
      : exchange_(exchange),
        queue_pairs_(queue_pairs),
        groups_(groups),
        routes_(routes),
        management_(management),
        host_counters_(host_counters),
        tap_(tap) {}

  // From shared memory.
  transport::Receipt on_datagram(const transport::Incoming& datagram) noexcept override {
    return deliver(datagram, nullptr);
  }
  // From a UDP port of `through`.
  transport::Receipt deliver(const transport::Incoming& datagram, Port* through) noexcept;

  // Requires: follow_up() after what is delivered then.
  void begin(bool patient) noexcept {
    patient_ = patient;
    held_back_ = false;
    at_ = {};
  }
  // Lets the connections that heard something answer, and go on.
  void follow_up() noexcept;
  // Something else was left where it was.
  void hold_back() noexcept { held_back_ = true; }
  // Whether something was left where it was since the last begin().
  bool held_back() const noexcept { return held_back_; }

 private:
  struct Arrival {
    const transport::Incoming& datagram;  // as it came
    wire::Packet packet;
    Envelope envelope;                 // of InfiniBand: what its own headers say
    std::size_t udp_payload_size = 0;  // from the BTH, with ICRC, there or not
    Port* port = nullptr;              // whose counters count it; nullptr where no port is known
  };

  Drop check(Arrival& arrival, const Port* through) const noexcept;
  Drop check_infiniband(Arrival& arrival, const Port* through) const noexcept;
  Drop check_port(const Arrival& arrival, QueuePair& queue_pair, const Port* through) const noexcept;
  QueuePair* find(Arrival& arrival, const Port* through, Drop& drop) noexcept;
  Drop deliver_connected(const Arrival& arrival, QueuePair& queue_pair) noexcept;
  Instant at() noexcept;
  transport::Receipt deliver_unicast(Arrival& arrival, const Port* through, Drop& drop) noexcept;
  Drop deliver_group(Arrival& arrival, const Port* through) noexcept;
  // Counts by itself; the process that gets it records it.
  transport::Receipt hand_over(const Arrival& arrival) noexcept;
  DeviceCounters& counters_of(const Arrival& arrival) noexcept;
  void record(const Arrival& arrival) noexcept;

  transport::Exchange& exchange_;
  const QpTable& queue_pairs_;
  const std::atomic<const engine::MulticastTable*>& groups_;
  const std::atomic<const Routes*>& routes_;
  Management& management_;
  DeviceCounters& host_counters_;
  transport::Tap* const tap_;
  bool patient_ = false;
  bool held_back_ = false;
  Instant at_;                         // of this batch; 0: nobody has asked yet
  QueuePair* to_follow_up_ = nullptr;  // a list
  PutOffEvents put_off_;               // until those have answered
};

// Gives the datagrams of one port's UDP to the common inbound path, with their port.
class PortReceiver final : public transport::Receiver {
 public:
  PortReceiver(Inbound& inbound, Port& port) noexcept : inbound_(inbound), port_(port) {}
  transport::Receipt on_datagram(const transport::Incoming& datagram) noexcept override {
    return inbound_.deliver(datagram, &port_);
  }

 private:
  Inbound& inbound_;
  Port& port_;
};

}  // namespace verbena::device
