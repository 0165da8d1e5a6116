// The client's half of a ping session: from a connected control channel to an address in the directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/control_channel.h"
#include "cli/session_hello.h"
#include "cli/ud_endpoint.h"
#include "verbena/ah_handle.h"
#include "verbena/deadline.h"
#include "verbena/destination.h"
#include "verbena/result.h"

namespace verbena::cli {

// What this end says of itself: `first` stands before its other GIDs where it is one.
SessionHello hello_of(const UdEndpoint& endpoint, const Gid& first, std::uint32_t client);

// Receives the server's hello.
Result<SessionHello> receive_hello(ControlChannel& channel, Deadline deadline);

// Tells the server about this end, and waits for its go-ahead.
Status introduce(ControlChannel& channel, const UdEndpoint& endpoint, std::uint32_t client, Deadline deadline);

// Destinations for the server's addresses, the best first, with this flow label. On InfiniBand: its LID.
std::vector<Destination> destinations_of(const SessionHello& server, LinkLayer link_layer, std::uint32_t flow_label);

// The first of them that becomes ready.
// Errors: of the first, which is the best; kNotFound where there are none.
Result<AhHandle> acquire_first(AhDirectory& directory, const std::vector<Destination>& destinations, Deadline deadline);

}  // namespace verbena::cli
