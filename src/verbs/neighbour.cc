#include "verbs/neighbour.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <net/if.h>
#include <netinet/in.h>
#include <netlink/netlink.h>
#include <netlink/route/neighbour.h>
#include <netlink/socket.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace verbena::verbs {
namespace {

constexpr std::size_t kMacSize = 6;

struct Free {
  void operator()(nl_sock* socket) const noexcept { nl_socket_free(socket); }
  void operator()(nl_cache* cache) const noexcept { nl_cache_free(cache); }
  void operator()(nl_addr* address) const noexcept { nl_addr_put(address); }
  void operator()(rtnl_neigh* neighbour) const noexcept { rtnl_neigh_put(neighbour); }
};
template <class T>
using Handle = std::unique_ptr<T, Free>;

Handle<nl_addr> to_address(const Gid& gid) noexcept {
  if (gid.is_ipv4_mapped()) return Handle<nl_addr>(nl_addr_build(AF_INET, gid.bytes.data() + 12, 4));
  return Handle<nl_addr>(nl_addr_build(AF_INET6, gid.bytes.data(), gid.bytes.size()));
}

void multicast_mac(const Gid& group, std::uint8_t* mac) noexcept {
  const std::uint8_t* const low = group.bytes.data() + 12;
  if (group.is_ipv4_mapped()) {
    const std::uint8_t made[kMacSize] = {0x01, 0x00, 0x5e, static_cast<std::uint8_t>(low[1] & 0x7f), low[2], low[3]};
    std::copy_n(made, kMacSize, mac);
  } else {
    const std::uint8_t made[kMacSize] = {0x33, 0x33, low[0], low[1], low[2], low[3]};
    std::copy_n(made, kMacSize, mac);
  }
}

int look_up(unsigned interface, nl_addr* address, std::uint8_t* mac) noexcept {
  const Handle<nl_sock> socket(nl_socket_alloc());
  if (!socket || nl_connect(socket.get(), NETLINK_ROUTE) < 0) return EHOSTUNREACH;
  nl_cache* made = nullptr;
  if (rtnl_neigh_alloc_cache(socket.get(), &made) < 0) return EHOSTUNREACH;
  const Handle<nl_cache> cache(made);
  const Handle<rtnl_neigh> neighbour(rtnl_neigh_get(cache.get(), static_cast<int>(interface), address));
  if (!neighbour) return EHOSTUNREACH;
  const nl_addr* const station = rtnl_neigh_get_lladdr(neighbour.get());
  if (station == nullptr || nl_addr_get_len(station) != kMacSize) return EHOSTUNREACH;
  std::memcpy(mac, nl_addr_get_binary_addr(station), kMacSize);
  return 0;
}

}  // namespace

int own_mac(unsigned interface, std::uint8_t* mac) noexcept {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return errno;
  ifreq request{};
  int error = ::if_indextoname(interface, request.ifr_name) == nullptr ? ENODEV : 0;
  if (error == 0 && ::ioctl(socket, SIOCGIFHWADDR, &request) < 0) error = errno;
  ::close(socket);
  if (error == 0) std::memcpy(mac, request.ifr_hwaddr.sa_data, kMacSize);
  return error;
}

int find_neighbour(unsigned interface, const Gid& destination, std::uint8_t* mac) noexcept {
  if (destination.is_multicast()) {
    multicast_mac(destination, mac);
    return 0;
  }
  const Handle<nl_addr> address = to_address(destination);
  return address ? look_up(interface, address.get(), mac) : ENOMEM;
}

}  // namespace verbena::verbs
