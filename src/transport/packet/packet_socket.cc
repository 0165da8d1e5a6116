#include "transport/packet/packet_socket.h"

#include <cerrno>
#include <cstdint>
#include <string>

#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "transport/system_error.h"

namespace verbena::transport {
namespace {

Status check_ethernet(int socket, unsigned interface_index) {
  ifreq request{};
  request.ifr_ifindex = static_cast<int>(interface_index);
  if (::ioctl(socket, SIOCGIFNAME, &request) != 0) {
    return failure(ErrorCode::kNotFound, "There is no interface " + std::to_string(interface_index) + ".", ENODEV);
  }
  const std::string name = request.ifr_name;
  if (::ioctl(socket, SIOCGIFHWADDR, &request) != 0) return system_failure("Cannot ask for the MAC address of " + name);
  const auto kind = request.ifr_hwaddr.sa_family;
  if (kind == ARPHRD_ETHER || kind == ARPHRD_LOOPBACK) return {};
  return failure(ErrorCode::kUnsupported,
                 name + " is no Ethernet interface (hardware type " + std::to_string(kind) +
                     "): it has no frames for a raw packet queue pair.",
                 EOPNOTSUPP);
}

}  // namespace

Result<Fd> open_packet_socket(unsigned interface_index, ForkSet& forks) {
  const int fd = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 && errno == EPERM) {
    return failure(ErrorCode::kPermission,
                   "A raw packet queue pair needs CAP_NET_RAW in the network namespace of its interface: run as root "
                   "there, or give the capability (`setcap cap_net_raw+ep PROGRAM`, in a pod "
                   "securityContext.capabilities).",
                   EPERM);
  }
  if (fd < 0) return system_failure("Cannot make a packet socket");
  Fd socket(fd, forks);
  if (auto checked = check_ethernet(socket.get(), interface_index); !checked)
    return tl::make_unexpected(checked.error());
  sockaddr_ll at{};
  at.sll_family = AF_PACKET;
  at.sll_ifindex = static_cast<int>(interface_index);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
    return system_failure("Cannot bind a packet socket to interface " + std::to_string(interface_index));
  }
  return socket;
}

}  // namespace verbena::transport
