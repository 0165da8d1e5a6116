// Takes the Ethernet frames that arrive on one interface, as they stood on the wire: the kernel takes a VLAN tag out,
// and it is put back. What this host sends is not among them. The host's own protocols get every frame all the same;
// this is a copy.
//
// Thread-safety: receive(): one thread at a time. The rest: one thread at a time, beside it.
// Ownership:     keeps the DropCounter by reference.
// Errors:        frames that the kernel had no room for are counted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transport/datagram.h"
#include "transport/fd.h"
#include "transport/fork_set.h"
#include "verbena/result.h"

namespace verbena::transport {

class FrameReceiver {
 public:
  // Without the frame check sequence.
  virtual Receipt on_frame(ConstBytes frame) noexcept = 0;

 protected:
  ~FrameReceiver() = default;
};

// Which frames the interface must let through beside those for its own address and groups.
struct FrameReach {
  enum class Kind : std::uint8_t { kOwn, kAddress, kGroup, kAllGroups, kEverything };

  Kind kind = Kind::kOwn;
  std::array<std::uint8_t, 6> mac{};  // of kAddress and kGroup
};

class PacketListener {
 public:
  // How many frames one call takes at most, and how long each may be: what an interface of the largest MTU has, and
  // what the kernel puts together of several.
  static constexpr std::size_t kRun = 16;
  static constexpr std::size_t kMaxBytes = std::size_t{66} << 10;

  // As open_packet_socket(). `forks` keeps its descriptor. Frames arrive from here on.
  static Result<std::unique_ptr<PacketListener>> open(unsigned interface_index, DropCounter& drops, ForkSet& forks);
  ~PacketListener();

  // Readable when a frame is there.
  int fd() const noexcept { return socket_.get(); }

  // Counted: leave as often as reached for.
  Status reach(const FrameReach& reach) noexcept;
  void leave(const FrameReach& reach) noexcept;

  // Hands up to about `budget` frames to `receiver`, first those that it had no room for. Returns how many it took.
  std::size_t receive(FrameReceiver& receiver, std::size_t budget) noexcept;

 private:
  struct Arena;

  PacketListener(unsigned interface_index, Fd socket, DropCounter& drops);
  Status change(int option, const FrameReach& reach) noexcept;
  void read() noexcept;
  ConstBytes finish(std::size_t index) noexcept;

  const unsigned interface_index_;
  const Fd socket_;
  DropCounter& drops_;
  std::unique_ptr<Arena> arena_;
  std::uint32_t overflows_ = 0;  // what the kernel said last of the frames that it lost
  // What was read and not yet taken.
  std::size_t first_ = 0;
  std::size_t left_ = 0;
};

}  // namespace verbena::transport
