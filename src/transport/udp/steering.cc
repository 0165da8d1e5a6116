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

void steer_by_slot(int socket, const UdpOptions& options) noexcept {
  std::ifstream file(options.address.is_ipv4_mapped() ? "/proc/net/udp" : "/proc/net/udp6");
  const std::string table((std::istreambuf_iterator<char>(file)), {});
  const auto sockets = count_bound_sockets(table, options.address, options.port);
  if (sockets < 2) return;
  // Bytes 4 to 7 of the BTH end with the destination QPN, of which the upper 8 bits count. X is where the BTH begins:
  // at 0; on InfiniBand behind an LRH of 8 bytes, and a GRH of 40 where the LRH's byte 1 ends with the bits 11.
  constexpr std::uint32_t kBehindLrh = 8;
  constexpr std::uint32_t kBehindGrh = 48;
  const bool has_lrh = options.framing == Framing::kInfiniband;
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 1),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 3),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 3, 0, 2),
      BPF_STMT(BPF_LDX | BPF_IMM, has_lrh ? kBehindGrh : 0),
      BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
      BPF_STMT(BPF_LDX | BPF_IMM, has_lrh ? kBehindLrh : 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_IND, 4),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffffff),
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 16),
      BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, static_cast<std::uint32_t>(sockets)),
      BPF_STMT(BPF_RET | BPF_A, 0),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(steps)), steps};
  ::setsockopt(socket, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof program);
}

}  // namespace verbena::transport
