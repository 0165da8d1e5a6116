#include "cli/interface.h"

#include <array>

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "cli/descriptor.h"

namespace verbena::cli {

std::string interface_name(std::uint32_t index) {
  std::array<char, IF_NAMESIZE> name{};
  if (index == 0 || ::if_indextoname(index, name.data()) == nullptr) return {};
  return name.data();
}

bool interface_is_up(const std::string& name) {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  name.copy(request.ifr_name, IF_NAMESIZE - 1);
  return ::ioctl(socket.get(), SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_UP) != 0;
}

std::uint32_t interface_mtu(const std::string& name) {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  name.copy(request.ifr_name, IF_NAMESIZE - 1);
  if (name.empty() || ::ioctl(socket.get(), SIOCGIFMTU, &request) != 0) return 0;
  return static_cast<std::uint32_t>(request.ifr_mtu);
}

}  // namespace verbena::cli
