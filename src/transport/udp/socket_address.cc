#include "transport/udp/socket_address.h"

#include <cstring>

#include <arpa/inet.h>

namespace verbena::transport {

Gid gid_of(const in_addr& address) noexcept {
  return Gid::from_ipv4(ntohl(address.s_addr));
}

Gid gid_of(const in6_addr& address) noexcept {
  Gid gid;
  std::memcpy(gid.bytes.data(), &address, sizeof address);
  return gid;
}

in_addr ipv4_of(const Gid& gid) noexcept {
  return {htonl(gid.ipv4())};
}

in6_addr ipv6_of(const Gid& gid) noexcept {
  in6_addr address{};
  std::memcpy(&address, gid.bytes.data(), sizeof address);
  return address;
}

SocketAddress::SocketAddress(const Gid& gid, std::uint16_t port, unsigned interface_index) noexcept {
  if (gid.is_ipv4_mapped()) {
    address_.v4.sin_family = AF_INET;
    address_.v4.sin_port = htons(port);
    address_.v4.sin_addr = ipv4_of(gid);
    return;
  }
  address_.v6.sin6_family = AF_INET6;
  address_.v6.sin6_port = htons(port);
  address_.v6.sin6_addr = ipv6_of(gid);
  const bool is_local_multicast = gid.bytes[0] == 0xff && (gid.bytes[1] & 0x0f) <= 2;
  if (gid.is_link_local() || is_local_multicast) address_.v6.sin6_scope_id = interface_index;
}

socklen_t SocketAddress::length() const noexcept {
  return get()->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

Gid SocketAddress::gid() const noexcept {
  return get()->sa_family == AF_INET ? gid_of(address_.v4.sin_addr) : gid_of(address_.v6.sin6_addr);
}

std::uint16_t SocketAddress::port() const noexcept {
  return ntohs(get()->sa_family == AF_INET ? address_.v4.sin_port : address_.v6.sin6_port);
}

}  // namespace verbena::transport
