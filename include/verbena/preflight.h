// Checks before the first send, in words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "verbena/export.h"
#include "verbena/gid.h"
#include "verbena/result.h"

namespace verbena {

enum class Severity { kGood, kNote, kWarning, kFailure };

VERBENA_API const char* to_string(Severity severity) noexcept;

struct Finding {
  std::string check;  // snake_case, stable: "port_state", "gid_table", "memlock", "source_for_peer"
  Severity severity = Severity::kGood;
  std::string subject{};   // what was looked at: "mlx5_0 port 1", "eth0", "10.0.0.7"; empty: this host or process
  std::string evidence{};  // what was seen
  std::string cause{};     // why that is so, or what it leads to; empty where nothing is wrong
  std::string remedy{};    // what to do; empty where nothing is wrong
};

// Device and port, the GID table against the addresses of the interface in this network namespace, the locked-memory
// limit, and, with a peer, source, route, neighbour and hop limit. It sends nothing: an address that the kernel has no
// neighbour entry for yet is a note. `verbena doctor` looks at more, and can prove that data moves.
VERBENA_API std::vector<Finding> preflight(ibv_context* context, std::uint8_t port,
                                           const std::optional<Gid>& peer = std::nullopt, std::uint8_t hop_limit = 64);

VERBENA_API Severity worst(const std::vector<Finding>& findings) noexcept;

// Bytes of payload that one packet carries on a path: the least of both ports' MTUs and of what the route lets through,
// rounded down to a value that verbs knows (256 ... 4096). 0 for an argument means "not known".
VERBENA_API std::uint32_t effective_mtu(std::uint32_t local_mtu, std::uint32_t peer_mtu, std::uint32_t route_ip_mtu,
                                        bool ipv4) noexcept;

}  // namespace verbena
