// Hands batches of datagrams to sendmmsg and names what the kernel says to them.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "transport/datagram.h"
#include "transport/udp/source_ports.h"
#include "transport/udp/udp_port.h"

namespace verbena::transport {

// Thread-safety: any thread may call send().
class UdpSender {
 public:
  UdpSender(const UdpOptions& options, int main_socket, const SourcePorts& ports, DropCounter& drops) noexcept
      : options_(options), main_socket_(main_socket), ports_(ports), drops_(drops) {}

  SendResult send(std::span<const Outgoing> batch) noexcept;

 private:
  std::size_t send_run(std::span<const Outgoing> batch, bool& full) noexcept;
  void refuse(const Outgoing& datagram, int error) noexcept;
  void explain_once(const Outgoing& datagram, Drop drop, int error) noexcept;
  int socket_of(std::uint16_t source_port) const noexcept;

  const UdpOptions& options_;
  int main_socket_;
  const SourcePorts& ports_;
  DropCounter& drops_;
  std::atomic<std::uint64_t> explained_{0};  // a bit for each Drop
};

}  // namespace verbena::transport
