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

  // Hands up to min(budget, kRun) datagrams to `receiver`, those first that it had no room for, then those of `socket`;
  // returns how many it took. `overflows` is what the kernel said last about this socket's lost datagrams; the
  // difference is counted.
  std::size_t take(int socket, Receiver& receiver, std::size_t budget, std::uint32_t& overflows) noexcept;

 private:
  struct Arena;

  void read(int socket, std::size_t run, std::uint32_t& overflows) noexcept;
  Receipt hand_over(std::size_t index, Receiver& receiver) noexcept;

  DropCounter& drops_;
  std::unique_ptr<Arena> arena_;
  // What was read and not yet taken.
  std::size_t first_ = 0;
  std::size_t left_ = 0;
};

}  // namespace verbena::transport
