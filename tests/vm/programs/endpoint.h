// One end of a datagram conversation over the middleware, on a device that is named: all it owns, and how it sends and
// receives.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "verbena/address_directory.h"
#include "verbena/completion_queue.h"
#include "verbena/device.h"
#include "verbena/memory_region.h"
#include "verbena/protection_domain.h"
#include "verbena/queue_pair.h"

namespace verbena::vm {

inline constexpr std::uint32_t kQkey = 0x1234567;

struct Received {
  std::string text;
  std::uint32_t qpn = 0;  // the sender's
  Destination reply;      // the way back
};

// Thread-safety: none; one owner.
// Ownership:     owns all its verbs objects and the handles it acquired.
// Errors:        of the middleware, unchanged.
class Endpoint {
 public:
  static Result<Endpoint> open(const std::string& device);

  AhDirectory& directory() noexcept { return directory_; }
  std::uint32_t qpn() const noexcept { return pair_.number(); }

  // Acquires the destination and keeps the handle until drop() or close().
  Result<AhHandle> acquire(const Destination& destination, std::chrono::milliseconds patience);
  bool drop(const Destination& destination);
  // To a destination that a look-up finds ready.
  Status send(const Destination& destination, std::uint32_t qpn, std::string_view text);
  Result<Received> receive(std::chrono::milliseconds patience);

  // Closes everything in order, each with its error; returns what the directory left.
  Result<AhLeftover> close(std::chrono::milliseconds patience);

 private:
  static constexpr std::size_t kReceives = 64;
  static constexpr std::size_t kPayload = 1024;

  Status make_queues();

  Context context_;
  ProtectionDomain domain_;
  AhDirectory directory_;
  CompletionChannel sent_channel_;
  CompletionChannel received_channel_;
  CompletionQueue sent_;
  CompletionQueue received_;
  DatagramBuffers buffers_;  // the last one is to send from
  QueuePair pair_;
  AhSender sender_;
  std::map<std::string, AhHandle> handles_;  // by address
};

}  // namespace verbena::vm
