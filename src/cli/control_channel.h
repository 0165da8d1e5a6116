// A stream between two processes that carries lines: TCP between the ends of a ping, a socket pair in the demo.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/descriptor.h"
#include "verbena/deadline.h"
#include "verbena/gid.h"
#include "verbena/result.h"

namespace verbena::cli {

// This host's end of a connection.
struct LocalAddress {
  Gid gid{};                 // zero for a socket pair
  std::uint32_t netdev = 0;  // index of the interface of a link-local address, else 0

  friend bool operator==(const LocalAddress&, const LocalAddress&) = default;
};

// Thread-safety: none; one owner at a time.
// Ownership:     owns its socket.
// Errors:        kUnavailable where the other end is gone, kTimedOut, kInvalidArgument for a line that does not end.
class ControlChannel {
 public:
  ControlChannel() = default;
  explicit ControlChannel(Descriptor socket) noexcept : socket_(std::move(socket)) {}

  // `host` is a name or an address.
  static Result<ControlChannel> connect(const std::string& host, std::uint16_t port, Deadline deadline);

  int fd() const noexcept { return socket_.get(); }
  // Adds the newline.
  Status send_line(std::string_view line, Deadline deadline);
  // Without the newline. Waits for it.
  Result<std::string> receive_line(Deadline deadline);
  // True where a whole line is there or can be had without waiting; `line` is it. False where there is none yet.
  Result<bool> take_line(std::string& line);

  // The other end's address and port, for display; "" for a socket pair.
  std::string peer() const;
  LocalAddress local_address() const;

 private:
  bool cut_line(std::string& line);
  // True where something came, false where nothing is there.
  Result<bool> read_more();

  Descriptor socket_;
  std::string received_;
};

// A TCP socket that accepts on every address of this host, IPv6 and IPv4. Port 0 takes any free one.
// Errors: kBusy where the port is taken, else what the system said.
Result<Descriptor> listen_on(std::uint16_t port);

// The port it listens on.
std::uint16_t port_of(const Descriptor& listener);

// A connection that is waiting; empty where none is.
Descriptor accept_from(const Descriptor& listener);

}  // namespace verbena::cli
