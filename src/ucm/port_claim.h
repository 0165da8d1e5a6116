// A port of a port space that a program has bound: the name under which requests for it arrive in this process, and
// which no other process of the network namespace can have meanwhile (host/management_name.h).
//
// Thread-safety: none; one owner at a time.
// Ownership:     owns its socket; the name is free when it goes.
#pragma once

#include <cstdint>
#include <optional>

#include "transport/fd.h"
#include "verbena/gid.h"
#include "verbena/result.h"
#include "wire/ip_service.h"

namespace verbena::ucm {

class PortClaim {
 public:
  // `at` nothing: at all addresses. `port` 0: one that is free, of those that the kernel gives out by itself, searched
  // from `seed`. kBusy with EADDRINUSE where it is taken; a claim at all addresses and one at a single one shut each
  // other out unless `shared`.
  static Result<PortClaim> take(wire::PortSpace space, std::uint16_t port, const std::optional<Gid>& at, bool shared,
                                std::uint32_t seed);

  int fd() const noexcept { return socket_.get(); }
  std::uint16_t port() const noexcept { return port_; }

 private:
  PortClaim(transport::Fd socket, std::uint16_t port) noexcept : socket_(std::move(socket)), port_(port) {}

  transport::Fd socket_;
  std::uint16_t port_;
};

// A datagram socket with an abstract name; -1 with errno.
transport::Fd bind_abstract(const std::string& name) noexcept;

}  // namespace verbena::ucm
