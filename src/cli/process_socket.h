// The abstract Unix sockets on which processes of this network namespace tell about themselves.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/socket.h>

#include "base/instant.h"
#include "cli/descriptor.h"
#include "host/counter_page.h"
#include "verbena/result.h"

namespace verbena::cli {

// Each line of /proc/net/unix. Errors: kUnavailable where it cannot be read, kExhausted for want of a descriptor.
Result<std::vector<std::string>> listed_sockets();

// A SOCK_SEQPACKET connection to the socket of that name; empty, with errno, where there is none. Does not block.
Descriptor connect_to(std::string_view name);

// False where nothing came until then.
bool wait_readable(const Descriptor& socket, Instant deadline);

// Who listens there.
ucred peer_of(const Descriptor& socket);
bool is_gone(const ucred& peer);
// Why a process that is there ended the connection.
std::string why_closed(const ucred& peer);

struct Received {
  std::size_t size = 0;  // 0: the connection ended, or nothing is there
  std::vector<Descriptor> descriptors;
  bool short_of_descriptors = false;  // one came, and this process could not take it
};
// One packet, if it is there.
Received receive(const Descriptor& socket, std::span<std::byte> into);

// A copy of the counters in the memory behind `page`. kInvalidArgument where it is not sealed memory with such a page.
Result<host::CounterPageReading> read_page(const Descriptor& page);

}  // namespace verbena::cli
