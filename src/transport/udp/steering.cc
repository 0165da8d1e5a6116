#include "transport/udp/steering.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include "transport/udp/socket_address.h"
#include "transport/udp/udp_port.h"

namespace verbena::transport {
namespace {

// The kernel prints addresses as 32-bit words in host order.
std::string as_the_kernel_prints(const Gid& address, unsigned port) {
  std::array<std::uint32_t, 4> words{};
  std::memcpy(words.data(), address.bytes.data(), sizeof words);
  if (address.is_ipv4_mapped()) return fmt::format(": {:08X}:{:04X} ", words[3], port);
  return fmt::format(": {:08X}{:08X}{:08X}{:08X}:{:04X} ", words[0], words[1], words[2], words[3], port);
}

}  // namespace

std::size_t count_bound_sockets(std::string_view proc_net_udp, const Gid& address, unsigned port) {
  const auto name = as_the_kernel_prints(address, port);
  std::size_t count = 0;
  for (auto at = proc_net_udp.find(name); at != std::string_view::npos; at = proc_net_udp.find(name, at + 1)) ++count;
  return count;
}

void steer_by_slot(int socket, const Gid& address) noexcept {
  std::ifstream file(address.is_ipv4_mapped() ? "/proc/net/udp" : "/proc/net/udp6");
  const std::string table((std::istreambuf_iterator<char>(file)), {});
  const auto sockets = count_bound_sockets(table, address, kRocePort);
  if (sockets < 2) return;
  // The UDP payload begins with a BTH; its bytes 4 to 7 end with the destination QPN, of which the upper 8 bits count.
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffffff),
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 16),
      BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, static_cast<std::uint32_t>(sockets)),
      BPF_STMT(BPF_RET | BPF_A, 0),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(steps)), steps};
  ::setsockopt(socket, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program);
}

}  // namespace verbena::transport
