// Takes datagrams from UDP sockets, many a system call, into memory made once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "transport/datagram.h"

namespace verbena::transport {

// Thread-safety: none; one owner at a time.
class UdpArrivals {
 public:
  // How many one call takes at most, and how long each may be: 4096 bytes of payload and all headers. A longer one is
  // counted as kPayloadTooLong.
  static constexpr std::size_t kRun = 32;
  static constexpr std::size_t kMaxBytes = 4608;

  explicit UdpArrivals(DropCounter& drops);
  ~UdpArrivals();
  UdpArrivals(const UdpArrivals&) = delete;
  UdpArrivals& operator=(const UdpArrivals&) = delete;

  // Hands up to min(budget, kRun) datagrams of `socket` to `receiver`; returns how many came. `overflows` is what the
  // kernel said last about this socket's lost datagrams; the difference is counted.
  std::size_t take(int socket, Receiver& receiver, std::size_t budget, std::uint32_t& overflows) noexcept;

 private:
  struct Arena;

  void hand_over(std::size_t index, Receiver& receiver, std::uint32_t& overflows) noexcept;

  DropCounter& drops_;
  std::unique_ptr<Arena> arena_;
};

}  // namespace verbena::transport
