// A GID and a UDP port as the socket calls take them.
#pragma once

#include <cstdint>

#include <netinet/in.h>
#include <sys/socket.h>

#include "verbena/gid.h"

namespace verbena::transport {

class SocketAddress {
 public:
  SocketAddress() noexcept = default;
  // The interface counts for link-local addresses only.
  SocketAddress(const Gid& gid, std::uint16_t port, unsigned interface_index) noexcept;

  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&address_); }
  sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&address_); }
  socklen_t length() const noexcept;
  static constexpr socklen_t kCapacity = sizeof(sockaddr_in6);

  Gid gid() const noexcept;
  std::uint16_t port() const noexcept;

 private:
  union {
    sockaddr_in v4;
    sockaddr_in6 v6;
  } address_{};
};

Gid gid_of(const in_addr& address) noexcept;
Gid gid_of(const in6_addr& address) noexcept;
in_addr ipv4_of(const Gid& gid) noexcept;
in6_addr ipv6_of(const Gid& gid) noexcept;

}  // namespace verbena::transport
