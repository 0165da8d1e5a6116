// One sending socket for each UDP source port in use, because the ICRC covers the port and the kernel takes it from
// the socket.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "transport/fd.h"
#include "transport/udp/udp_port.h"

namespace verbena::transport {

// Thread-safety: any thread may call anything; find() takes no lock.
// Ownership:     sockets stay open until the end, as headers that name their port may be kept.
class SourcePorts {
 public:
  // RoCEv2 source ports are 0xC000 to 0xFFFF.
  static constexpr std::uint16_t kFirst = 0xC000;
  // How many ports after the one wanted are tried where it is taken.
  static constexpr unsigned kTries = 8;

  SourcePorts(const UdpOptions& options, ForkSet& forks) noexcept : options_(options), forks_(forks) {}

  // A port that can be sent from; see UdpPort::reserve_source_port().
  std::uint16_t reserve(std::uint16_t wanted) noexcept;

  // The socket of a reserved port, else -1.
  int find(std::uint16_t port) const noexcept {
    return port < kFirst ? -1 : sockets_[port - kFirst].load(std::memory_order_acquire) - 1;
  }

 private:
  std::uint16_t bind_near(unsigned offset) noexcept;  // Requires: mutex_

  const UdpOptions& options_;
  ForkSet& forks_;
  std::array<std::atomic<int>, 0x10000 - kFirst> sockets_{};  // descriptor + 1; pairs with reserve()
  // What reserve() answered for each port wanted, good or not; 0: not asked yet.
  std::array<std::atomic<std::uint16_t>, 0x10000 - kFirst> answers_{};
  std::mutex mutex_;  // guards all below
  std::vector<Fd> owned_;
  std::vector<std::uint16_t> reserved_;
};

}  // namespace verbena::transport
