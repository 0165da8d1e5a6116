// The last step of sending: each datagram to the process of this host that it is for, through shared memory, or into
// UDP with the network header and the ICRC that the wire wants.
//
// Thread-safety: any thread, inside an RCU read section.
#pragma once

#include <atomic>
#include <span>

#include "device/device_counters.h"
#include "device/routes.h"
#include "transport/datagram.h"
#include "transport/shm/exchange.h"

namespace verbena::device {

class Router final : public transport::Sender {
 public:
  Router(transport::Exchange& exchange, DeviceCounters& counters, const std::atomic<const Routes*>& routes,
         bool use_shared_memory) noexcept
      : exchange_(exchange), counters_(counters), routes_(routes), use_shared_memory_(use_shared_memory) {}

  transport::SendResult send(std::span<const transport::Outgoing> batch, Instant now) noexcept override;

 private:
  transport::ExchangeResult send_shared(std::span<const transport::Outgoing> run, const Routes& routes,
                                        Instant now) noexcept;
  transport::SendResult send_carried(std::span<const transport::Outgoing> run, const Routes& routes,
                                     Instant now) noexcept;
  transport::SendResult send_wire(std::span<const transport::Outgoing> run, const Routes& routes, Instant now) noexcept;

  transport::Exchange& exchange_;
  DeviceCounters& counters_;
  const std::atomic<const Routes*>& routes_;
  const bool use_shared_memory_;
};

}  // namespace verbena::device
