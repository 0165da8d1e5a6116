// RoCEv2's UDP on one local address: port 4791 through plain sockets, no privilege needed. Packets of InfiniBand ports
// travel so as well, on a port of their own (UdpOptions::port).
//
// Everything that the ICRC covers is decided by the sender before the kernel sees the datagram: DF and ID 0 by path
// MTU discovery "probe", checksum 0, TOS and TTL by control message, and the source port by *binding*: one socket a
// source port, so a port must be reserved before it is written into a header. Several processes of one user share the
// address by SO_REUSEPORT; a classic BPF program spreads arrivals by the slot in the destination QPN. That is a hint,
// not a promise: a datagram for any slot may arrive in any of the processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transport/datagram.h"
#include "verbena/gid.h"
#include "verbena/result.h"

namespace verbena::transport {

inline constexpr std::uint16_t kRocePort = 4791;

// Where in the payload the BTH begins, for the steering.
enum class Framing : std::uint8_t {
  kRoce,        // at its beginning
  kInfiniband,  // behind an LRH, and behind a GRH where the LRH says so
};

struct UdpOptions {
  Gid address;                                      // of an interface here; ::ffff:a.b.c.d for IPv4
  unsigned interface_index = 0;                     // for link-local addresses and for multicast
  std::size_t buffer_bytes = std::size_t{4} << 20;  // of the kernel, each way; the kernel may grant less
  std::size_t max_source_ports = 64;
  std::uint16_t port = kRocePort;  // that it receives on and sends to
  Framing framing = Framing::kRoce;
};

// Thread-safety: send() and reserve_source_port(): any thread. receive(): one thread at a time. join() and leave():
//                one thread at a time, any thread.
// Ownership:     keeps the DropCounter by reference.
// Errors:        what cannot be sent is counted by reason; the reasons that need words are explained once.
class UdpPort final : public Sender {
 public:
  // Binds. kBusy where the UDP port of the address belongs to somebody else, kNotFound where the address is not here.
  static Result<std::unique_ptr<UdpPort>> open(const UdpOptions& options, DropCounter& drops);
  ~UdpPort() override;
  UdpPort(const UdpPort&) = delete;
  UdpPort& operator=(const UdpPort&) = delete;

  const Gid& address() const noexcept;
  // Readable when a datagram is there, of a multicast group too. Never changes.
  int fd() const noexcept;

  // The source port that datagrams can really have: `wanted`, one near to it, or options.port. Ask once for each
  // address handle or queue pair, build headers with the answer.
  std::uint16_t reserve_source_port(std::uint16_t wanted) noexcept;

  // Envelopes must have a source port that reserve_source_port() gave; another one goes out of options.port.
  SendResult send(std::span<const Outgoing> batch, Instant now) noexcept override;

  // Hands up to about `budget` datagrams to `receiver`, which may call send(). Returns how many.
  std::size_t receive(Receiver& receiver, std::size_t budget) noexcept;

  // Receives the group on this port's interface from now on; counted: leave as often as joined. Each process of the
  // host that joined gets each datagram, the sender too.
  Status join(const Gid& group);
  Status leave(const Gid& group);

  // In the child of a fork: closes all. Nothing but the destructor may follow.
  void abandon() noexcept;

 private:
  class Impl;
  explicit UdpPort(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

}  // namespace verbena::transport
