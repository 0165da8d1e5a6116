#include "ucm/socket_address.h"

#include <cstring>

#include <fmt/format.h>
#include <netinet/in.h>

namespace verbena::ucm {

SocketAddress any_address(bool ipv4) noexcept {
  SocketAddress address;
  address.ipv4 = ipv4;
  if (ipv4) address.gid = Gid::from_ipv4(0);
  return address;
}

std::optional<SocketAddress> parse_address(const void* bytes, std::size_t size) noexcept {
  sa_family_t family = 0;
  if (size < sizeof family) return std::nullopt;
  std::memcpy(&family, bytes, sizeof family);
  SocketAddress address;
  if (family == AF_INET && size >= sizeof(sockaddr_in)) {
    sockaddr_in in{};
    std::memcpy(&in, bytes, sizeof in);
    address.gid = Gid::from_ipv4(ntohl(in.sin_addr.s_addr));
    address.port = ntohs(in.sin_port);
    return address;
  }
  if (family == AF_INET6 && size >= sizeof(sockaddr_in6)) {
    sockaddr_in6 in{};
    std::memcpy(&in, bytes, sizeof in);
    std::memcpy(address.gid.bytes.data(), &in.sin6_addr, sizeof in.sin6_addr);
    address.port = ntohs(in.sin6_port);
    address.scope = in.sin6_scope_id;
    address.ipv4 = false;
    return address;
  }
  return std::nullopt;
}

std::size_t put_address(const SocketAddress& address, sockaddr_storage& storage) noexcept {
  storage = {};
  if (address.ipv4) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(address.port);
    in.sin_addr.s_addr = htonl(address.gid.ipv4());
    std::memcpy(&storage, &in, sizeof in);
    return sizeof in;
  }
  sockaddr_in6 in{};
  in.sin6_family = AF_INET6;
  in.sin6_port = htons(address.port);
  in.sin6_scope_id = address.scope;
  std::memcpy(&in.sin6_addr, address.gid.bytes.data(), sizeof in.sin6_addr);
  std::memcpy(&storage, &in, sizeof in);
  return sizeof in;
}

std::string to_string(const SocketAddress& address) {
  return fmt::format("[{}]:{}", verbena::to_string(address.gid), address.port);
}

}  // namespace verbena::ucm
