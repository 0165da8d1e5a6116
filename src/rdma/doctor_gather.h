// Fills the facts (doctor_facts.h) from this host: verbs, netlink, /proc, /sys. Nothing is sent to the network and
// nothing is created but the contexts that a look at a device needs; a device that does not open is a fact, too.
//
// Thread-safety: any thread; facts are of the calling thread's network namespace.
// Errors:        none: what cannot be learned is left out of the facts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "rdma/doctor_facts.h"

namespace verbena::rdma {

HostFacts gather_host();

// One device that is open already.
DeviceFacts gather_device(ibv_context* context);

// Width times speed; 0 where the port does not say.
std::uint64_t port_rate_mbps(ibv_context* context, std::uint8_t port);

// What is asked about a peer.
struct PathQuestion {
  std::string peer{};
  Gid destination{};
  std::uint32_t netdev = 0;  // interface index that the user named; 0: by route
  std::uint16_t dlid = 0;
  std::string device{};                   // empty: that which the route to the peer leaves by
  std::uint8_t port = 0;                  // of the device; 0: likewise
  std::optional<LinkLayer> link_layer{};  // of the peer; ports of the other kind come last
  std::uint8_t hop_limit = 64;
  std::uint8_t static_rate = 0;
  std::uint8_t traffic_class = 0;
  std::optional<std::uint32_t> qkey{};
  std::optional<std::uint64_t> peers{};
};

PathFacts gather_path(const HostFacts& host, const PathQuestion& question);

}  // namespace verbena::rdma
