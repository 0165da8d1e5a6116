// An IP address and port as programs hand them over in a sockaddr.
//
// Thread-safety: a plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <sys/socket.h>

#include "verbena/gid.h"

namespace verbena::ucm {

struct SocketAddress {
  Gid gid;                  // IPv4 mapped
  std::uint16_t port = 0;   // host order
  std::uint32_t scope = 0;  // of a link-local IPv6 address: the interface
  bool ipv4 = true;

  bool is_any() const noexcept { return ipv4 ? gid.ipv4() == 0 : gid.is_zero(); }

  friend bool operator==(const SocketAddress&, const SocketAddress&) = default;
};

SocketAddress any_address(bool ipv4) noexcept;

// Nothing where the family is neither AF_INET nor AF_INET6, or `size` is too small for it.
std::optional<SocketAddress> parse_address(const void* bytes, std::size_t size) noexcept;

// Returns how many bytes of `storage` it takes.
std::size_t put_address(const SocketAddress& address, sockaddr_storage& storage) noexcept;

std::string to_string(const SocketAddress& address);

}  // namespace verbena::ucm
