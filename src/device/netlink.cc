#include "device/netlink.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_arp.h>
#include <linux/rtnetlink.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/route.h>
#include <sys/socket.h>

#include "transport/system_error.h"

namespace verbena::device {
namespace {

struct SocketFree {
  void operator()(nl_sock* socket) const noexcept { nl_socket_free(socket); }
};
struct CacheFree {
  void operator()(nl_cache* cache) const noexcept { nl_cache_free(cache); }
};
using OwnedSocket = std::unique_ptr<nl_sock, SocketFree>;
using OwnedCache = std::unique_ptr<nl_cache, CacheFree>;

// The library has no code of its own for a limit on descriptors, but leaves errno. Requires: errno was 0 before.
tl::unexpected<Error> netlink_failure(const char* what, int code) {
  if (const int number = errno; number == EMFILE || number == ENFILE) {
    return failure(ErrorCode::kExhausted, fmt::format("rtnetlink: {}: {}", what, transport::system_words(number)),
                   number);
  }
  return failure(ErrorCode::kUnavailable, fmt::format("rtnetlink: {}: {}", what, nl_geterror(code)), EIO);
}

Interface to_interface(rtnl_link* link) {
  Interface interface;
  interface.index = static_cast<unsigned>(rtnl_link_get_ifindex(link));
  interface.name = rtnl_link_get_name(link);
  interface.mtu = rtnl_link_get_mtu(link);
  const unsigned flags = rtnl_link_get_flags(link);
  interface.loopback = (flags & IFF_LOOPBACK) != 0;
  interface.up = (flags & IFF_UP) != 0 && (flags & (IFF_LOWER_UP | IFF_LOOPBACK)) != 0;
  if (const auto* mac = rtnl_link_get_addr(link); mac != nullptr && nl_addr_get_len(mac) == interface.mac.size()) {
    std::memcpy(interface.mac.data(), nl_addr_get_binary_addr(mac), interface.mac.size());
  }
  return interface;
}

void add_address(Network& network, rtnl_addr* address) {
  const auto* local = rtnl_addr_get_local(address);
  if (local == nullptr) return;
  InterfaceAddress entry;
  const auto* bytes = static_cast<const std::uint8_t*>(nl_addr_get_binary_addr(local));
  if (rtnl_addr_get_family(address) == AF_INET && nl_addr_get_len(local) == 4) {
    entry.gid.bytes[10] = entry.gid.bytes[11] = 0xff;
    std::memcpy(entry.gid.bytes.data() + 12, bytes, 4);
  } else if (rtnl_addr_get_family(address) == AF_INET6 && nl_addr_get_len(local) == 16) {
    std::memcpy(entry.gid.bytes.data(), bytes, 16);
    entry.usable = (rtnl_addr_get_flags(address) & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) == 0;
  } else {
    return;
  }
  const auto index = static_cast<unsigned>(rtnl_addr_get_ifindex(address));
  for (auto& interface : network) {
    if (interface.index == index) interface.addresses.push_back(entry);
  }
}

void mark_default_route(Network& network, rtnl_route* route) {
  if (rtnl_route_get_type(route) != RTN_UNICAST || nl_addr_get_prefixlen(rtnl_route_get_dst(route)) != 0) return;
  for (int hop = 0; hop < rtnl_route_get_nnexthops(route); ++hop) {
    const auto index = static_cast<unsigned>(rtnl_route_nh_get_ifindex(rtnl_route_nexthop_n(route, hop)));
    for (auto& interface : network) {
      if (interface.index == index) interface.default_route = true;
    }
  }
}

}  // namespace

Result<std::unique_ptr<Netlink>> Netlink::open() {
  OwnedSocket requests(nl_socket_alloc());
  OwnedSocket notices(nl_socket_alloc());
  if (!requests || !notices) return failure(ErrorCode::kExhausted, "no memory for a netlink socket", ENOMEM);
  nl_socket_disable_seq_check(notices.get());
  for (auto* socket : {requests.get(), notices.get()}) {
    errno = 0;
    if (const int code = nl_connect(socket, NETLINK_ROUTE); code < 0) return netlink_failure("connect", code);
  }
  errno = 0;
  if (const int code = nl_socket_add_memberships(notices.get(), RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
                                                 RTNLGRP_NONE);
      code < 0) {
    return netlink_failure("subscribe", code);
  }
  nl_socket_set_nonblocking(notices.get());
  return std::unique_ptr<Netlink>(new Netlink(requests.release(), notices.release()));
}

Netlink::~Netlink() {
  nl_socket_free(requests_);
  nl_socket_free(notices_);
}

int Netlink::fd() const noexcept {
  return nl_socket_get_fd(notices_);
}

bool Netlink::drain() noexcept {
  bool any = false;
  std::array<std::byte, 16384> buffer;
  for (;;) {
    const auto size = recv(fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (size > 0 || (size < 0 && errno == ENOBUFS)) {  // ENOBUFS: notices were lost, so all may have changed
      any = true;
    } else if (size == 0 || errno != EINTR) {
      return any;
    }
  }
}

Result<Network> Netlink::read() {
  const auto load = [this](auto allocate, auto... arguments) -> Result<OwnedCache> {
    nl_cache* cache = nullptr;
    errno = 0;
    if (const int code = allocate(requests_, arguments..., &cache); code < 0) return netlink_failure("read", code);
    return OwnedCache(cache);
  };
  auto links = load(rtnl_link_alloc_cache, AF_UNSPEC);
  auto addresses = load(rtnl_addr_alloc_cache);
  auto routes = load(rtnl_route_alloc_cache, AF_UNSPEC, 0);
  for (const auto* cache : {&links, &addresses, &routes}) {
    if (!*cache) return tl::make_unexpected(cache->error());
  }
  Network network;
  for (auto* object = nl_cache_get_first(links->get()); object != nullptr; object = nl_cache_get_next(object)) {
    network.push_back(to_interface(reinterpret_cast<rtnl_link*>(object)));
  }
  for (auto* object = nl_cache_get_first(addresses->get()); object != nullptr; object = nl_cache_get_next(object)) {
    add_address(network, reinterpret_cast<rtnl_addr*>(object));
  }
  for (auto* object = nl_cache_get_first(routes->get()); object != nullptr; object = nl_cache_get_next(object)) {
    mark_default_route(network, reinterpret_cast<rtnl_route*>(object));
  }
  return network;
}

}  // namespace verbena::device
