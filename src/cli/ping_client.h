// The sending side of a ping: keeps a window of datagrams under way, waits for the answers, books what happens. Where
// each datagram goes, and by which address handle, is the caller's affair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/instant.h"
#include "cli/control_channel.h"
#include "cli/progress_bar.h"
#include "cli/round_trips.h"
#include "cli/ud_endpoint.h"
#include "verbena/ah_handle.h"
#include "verbena/queue_pair.h"
#include "verbena/result.h"

namespace verbena::cli {

struct PingPlan {
  std::uint64_t count = 1000;  // 0: until a stop signal
  std::size_t size = 64;       // bytes of payload
  std::size_t window = 1;      // under way at once
  Duration interval{0};        // between two sends at least
  Duration timeout{0};         // after which one is given up
  Duration time_limit{0};      // 0: none
  std::uint32_t client = 0;    // as the server numbered this client
};

// Posts what stands in the endpoint's payload(0), plan.size bytes, as datagram number `sequence`. Its time counts as
// part of the round trip. Where there is no address handle for it nothing is posted, and `unsent` says why.
using PostPing = std::function<Status(std::uint64_t sequence, std::string& unsent)>;

struct PingOutcome {
  RoundTrips round_trips{Duration(0)};
  Duration elapsed{0};
  std::string unsent_why;  // of the last that was not sent
  std::string ended_by;    // why it ended before its count; empty where it did not
  bool cut_short = false;  // it was the server's doing
};

// Requires: the endpoint has one queue pair; plan.window is below its depths; plan.size is at least a ping's header and
//           at most its buffers.
// Errors:   where the device refuses to go on. What is lost is no error.
Result<PingOutcome> run_ping(UdEndpoint& endpoint, const ControlChannel& channel, const PingPlan& plan,
                             const PostPing& post, ProgressBar& progress);

// As a PostPing does it with a directory: takes the address from the sender and posts. Where the directory has none
// just now (a GID or a link that comes and goes), nothing is posted and `unsent` says why; the next may find one again.
Status send_through_directory(UdEndpoint& endpoint, const AhHandle& handle, const UdPeer& peer, std::size_t size,
                              std::string& unsent);

}  // namespace verbena::cli
