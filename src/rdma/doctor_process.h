// What this process may do, and who has a UDP port: from /proc. The readers are pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rdma/doctor_facts.h"

namespace verbena::rdma {

inline constexpr std::uint16_t kRoceUdpPort = 4791;
inline constexpr std::uint16_t kInfinibandUdpPort = 4797;  // of the software RNIC's InfiniBand ports

// The sockets on `port` in the text of /proc/net/udp or udp6. Lines that are not such are left out.
std::vector<PortHolder> read_udp_table(std::string_view text, std::uint16_t port);

// The effective capabilities in the text of /proc/self/status; 0 where it has none.
std::uint64_t read_effective_capabilities(std::string_view status);

ProcessFacts gather_process();

// With the process of each, where it can be seen.
std::vector<PortHolder> gather_port_holders(std::uint16_t port);

// "process 12 (nc) of user 1000", or what can be said where the process cannot be seen.
std::string holder_in_words(const PortHolder& holder);

// Whether the sockets of all processes of the host can be seen from here.
bool sees_all_processes();

}  // namespace verbena::rdma
