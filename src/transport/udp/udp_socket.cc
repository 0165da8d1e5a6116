#include "transport/udp/udp_socket.h"

#include <string>

#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "transport/system_error.h"
#include "transport/udp/socket_address.h"
#include "transport/udp/steering.h"

namespace verbena::transport {
namespace {

// Of <linux/udp.h>, which does not go together with <netinet/udp.h>.
constexpr int kUdpNoCheck6Tx = 101;
constexpr int kUdpNoCheck6Rx = 102;

constexpr std::uint16_t kFirstPrivatePort = 0xc000;  // source ports lie from here on

struct Option {
  int level;
  int name;
  int value;
};

bool set(int fd, const Option& option) noexcept {
  return ::setsockopt(fd, option.level, option.name, &option.value, sizeof option.value) == 0;
}

template <class Options>
Status set_all(int fd, const Options& options) {
  for (const auto& option : options) {
    if (!set(fd, option)) {
      return system_failure("Cannot set option " + std::to_string(option.name) + " of level " +
                            std::to_string(option.level) + " on a UDP socket");
    }
  }
  return {};
}

// DF set and ID 0, no checksum: what the sender's ICRC stands on.
constexpr Option kShared[] = {{SOL_SOCKET, SO_REUSEPORT, 1}};
constexpr Option kSend4[] = {
    {SOL_SOCKET, SO_NO_CHECK, 1}, {IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE}, {IPPROTO_IP, IP_MULTICAST_LOOP, 1}};
constexpr Option kSend6[] = {{SOL_UDP, kUdpNoCheck6Tx, 1},
                             {IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE},
                             {IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 1}};
constexpr Option kReceive4[] = {{IPPROTO_IP, IP_RECVTOS, 1},
                                {IPPROTO_IP, IP_RECVTTL, 1},
                                {IPPROTO_IP, IP_PKTINFO, 1},
                                {SOL_SOCKET, SO_RXQ_OVFL, 1}};
constexpr Option kReceive6[] = {{SOL_UDP, kUdpNoCheck6Rx, 1},
                                {IPPROTO_IPV6, IPV6_RECVTCLASS, 1},
                                {IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1},
                                {IPPROTO_IPV6, IPV6_RECVPKTINFO, 1},
                                {SOL_SOCKET, SO_RXQ_OVFL, 1}};

Result<Fd> new_socket(const Gid& gid, ForkSet& forks) {
  const int family = gid.is_ipv4_mapped() ? AF_INET : AF_INET6;
  const int fd = ::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP);
  if (fd < 0) return system_failure("Cannot make a UDP socket");
  return Fd(fd, forks);
}

Status prepare_to_send(int fd, const UdpOptions& options) {
  if (!options.address.is_ipv4_mapped()) {
    if (options.interface_index != 0) {
      const Option by_interface{IPPROTO_IPV6, IPV6_MULTICAST_IF, static_cast<int>(options.interface_index)};
      if (!set(fd, by_interface)) return system_failure("Cannot choose the interface for multicast");
    }
    return set_all(fd, kSend6);
  }
  ip_mreqn from{};
  from.imr_address = ipv4_of(options.address);
  from.imr_ifindex = static_cast<int>(options.interface_index);
  if (::setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &from, sizeof from) != 0) {
    return system_failure("Cannot choose the interface for multicast");
  }
  return set_all(fd, kSend4);
}

Status prepare_to_receive(int fd, const UdpOptions& options) {
  const int bytes = static_cast<int>(options.buffer_bytes);
  if (!set(fd, {SOL_SOCKET, SO_RCVBUFFORCE, bytes})) set(fd, {SOL_SOCKET, SO_RCVBUF, bytes});
  if (!set(fd, {SOL_SOCKET, SO_SNDBUFFORCE, bytes})) set(fd, {SOL_SOCKET, SO_SNDBUF, bytes});
  return options.address.is_ipv4_mapped() ? set_all(fd, kReceive4) : set_all(fd, kReceive6);
}

Status bind_to(int fd, const Gid& gid, std::uint16_t port, unsigned interface_index) {
  const SocketAddress at(gid, port, interface_index);
  if (::bind(fd, at.get(), at.length()) == 0) return {};
  const std::string where = to_string(gid) + " port " + std::to_string(port);
  if (errno == EADDRINUSE && port != kRocePort && port < kFirstPrivatePort) {
    return failure(ErrorCode::kBusy,
                   "UDP port " + std::to_string(port) + " of " + to_string(gid) +
                       " is taken by another user's process, or by a program that does not share it (`ss -lunp` shows "
                       "it). End it, run as that user, or set VERBENA_UDP=off to stay on this host.",
                   EADDRINUSE);
  }
  if (errno == EADDRINUSE && port == kRocePort) {
    return failure(ErrorCode::kBusy,
                   "UDP port 4791 of " + to_string(gid) +
                       " is taken: by a kernel RoCE device (rxe: `rdma link` shows it, `rdma link delete NAME` removes "
                       "it), by another user's process, or by a program that does not share it (`verbena gids` and "
                       "`ss -lunp sport = :4791` show it). End it, run as that user, or set VERBENA_UDP=off to stay on "
                       "this host without this warning.",
                   EADDRINUSE);
  }
  return system_failure("Cannot bind UDP " + where);
}

Status drop_arrivals(int fd) {
  sock_filter drop_all[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog program{1, drop_all};
  if (::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0) {
    return system_failure("Cannot filter a UDP socket");
  }
  return {};
}

Status join_group(int fd, const UdpOptions& options, const Gid& group) {
  int result = 0;
  if (group.is_ipv4_mapped()) {
    ip_mreqn membership{};
    membership.imr_multiaddr = ipv4_of(group);
    membership.imr_address = ipv4_of(options.address);
    membership.imr_ifindex = static_cast<int>(options.interface_index);
    result = ::setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &membership, sizeof membership);
  } else {
    ipv6_mreq membership{};
    membership.ipv6mr_multiaddr = ipv6_of(group);
    membership.ipv6mr_interface = options.interface_index;
    result = ::setsockopt(fd, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &membership, sizeof membership);
  }
  if (result != 0) return system_failure("Cannot join multicast group " + to_string(group));
  return {};
}

// The first failure of steps in order.
template <class... Steps>
Result<Fd> after(Result<Fd> fd, Steps... steps) {
  if (!fd) return fd;
  Status status;
  static_cast<void>(((status = steps(fd->get())).has_value() && ...));
  if (!status) return tl::make_unexpected(status.error());
  return fd;
}

}  // namespace

Result<Fd> open_main_socket(const UdpOptions& options, ForkSet& forks) {
  return after(
      new_socket(options.address, forks), [](int fd) { return set_all(fd, kShared); },
      [&](int fd) { return prepare_to_send(fd, options); }, [&](int fd) { return prepare_to_receive(fd, options); },
      [&](int fd) { return bind_to(fd, options.address, options.port, options.interface_index); },
      [&](int fd) {
        steer_by_slot(fd, options);
        return Status();
      });
}

Result<Fd> open_source_socket(const UdpOptions& options, std::uint16_t port, ForkSet& forks) {
  return after(
      new_socket(options.address, forks), [](int fd) { return set_all(fd, kShared); }, drop_arrivals,
      [&](int fd) { return prepare_to_send(fd, options); },
      [&](int fd) {
        const int bytes = static_cast<int>(options.buffer_bytes);
        if (!set(fd, {SOL_SOCKET, SO_SNDBUFFORCE, bytes})) set(fd, {SOL_SOCKET, SO_SNDBUF, bytes});
        return bind_to(fd, options.address, port, options.interface_index);
      });
}

Result<Fd> open_group_socket(const UdpOptions& options, const Gid& group, ForkSet& forks) {
  const Option own_groups_only =
      group.is_ipv4_mapped() ? Option{IPPROTO_IP, IP_MULTICAST_ALL, 0} : Option{IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0};
  const Option options_of_all[] = {{SOL_SOCKET, SO_REUSEADDR, 1}, {SOL_SOCKET, SO_REUSEPORT, 1}, own_groups_only};
  return after(
      new_socket(group, forks), [&](int fd) { return set_all(fd, options_of_all); },
      [&](int fd) { return prepare_to_receive(fd, options); },
      [&](int fd) { return bind_to(fd, group, options.port, options.interface_index); },
      [&](int fd) { return join_group(fd, options, group); });
}

}  // namespace verbena::transport
