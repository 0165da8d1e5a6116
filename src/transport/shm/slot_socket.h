// The sockets by which processes meet (host/slot_name.h) and what goes over them (host/hello.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <sys/types.h>

#include "base/strong.h"
#include "host/hello.h"
#include "transport/fd.h"
#include "verbena/result.h"

namespace verbena::transport {

// Takes the slot's name and listens. kBusy where another process has it.
Result<Fd> listen_on_slot(Slot slot, ForkSet& set);

// Does not wait. kNotFound where nobody listens; kBusy where the listener has too many connections waiting.
Result<Fd> connect_to_slot(Slot slot, ForkSet& set);

// The next connection that waits on a listening socket; none where none waits.
std::optional<Fd> accept_connection(int listener, ForkSet& set);

// The effective user of the process that connected, or that listens at the other end.
std::optional<uid_t> peer_user(int connection);

// False where the message could not be sent at once.
bool send_hello(int connection, const host::Hello& hello, std::span<const int> descriptors);

struct ReceivedHello {
  enum class Outcome { kHello, kNothingYet, kEnded, kRefused };
  Outcome outcome = Outcome::kRefused;
  host::Hello hello;
  std::array<Fd, 2> descriptors;  // as many as the kind brings; others were closed
};

// Takes one message. kRefused for one that is not a hello, or not with the descriptors of its kind.
ReceivedHello receive_hello(int connection, ForkSet& set);

}  // namespace verbena::transport
