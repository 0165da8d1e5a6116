// Writes datagrams into a pcapng file that Wireshark and tshark dissect: raw IP packets (LINKTYPE_RAW), nanoseconds,
// with their direction. Processes may share one file: each block is one appending write, and whoever finds the file
// empty writes its head, under a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "transport/datagram.h"
#include "transport/fd.h"
#include "verbena/result.h"

namespace verbena::transport {

enum class Direction : std::uint8_t { kIn = 1, kOut = 2 };

// Thread-safety: any thread may call write().
// Errors:        the first write that fails is explained and is the last; traffic goes on.
class Tap {
 public:
  // Appends to the file, or makes it. kInvalidArgument where the file is there and is not one of ours.
  static Result<std::unique_ptr<Tap>> open(const std::string& path, DropCounter& log);

  // What open() would refuse. The file is made where there is none; what is no file is not written to.
  static Status check(const std::string& path);

  // One packet: the IP and UDP headers, then the UDP payload in parts. The time is since 1970.
  void write(Direction direction, ConstBytes network_header, std::span<const ConstBytes> parts,
             std::int64_t wall_clock_ns) noexcept;

  // In the child of a fork: closes the file.
  void abandon() noexcept { file_.reset(); }

 private:
  Tap(Fd file, DropCounter& log) noexcept : file_(std::move(file)), log_(log) {}

  Fd file_;
  DropCounter& log_;
  std::atomic<bool> failed_{false};
};

}  // namespace verbena::transport
