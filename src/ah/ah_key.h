// What makes two address handles the same one: the domain, the port, the source GID by value and type, and every field
// of the address vector. Never a table index, never the bytes of a padded struct.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include <infiniband/verbs.h>

#include "ah/destination_key.h"
#include "verbena/gid_table.h"

namespace verbena::ah {

struct AhKey {
  const ibv_pd* domain = nullptr;
  Gid destination;
  Gid source;
  GidType source_type = GidType::kRoceV2;
  bool global = true;
  std::uint8_t port = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t service_level = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t static_rate = 0;
  std::uint8_t source_path_bits = 0;
  std::uint16_t lid = 0;
  std::uint32_t flow_label = 0;
  std::uint32_t netdev = 0;  // of the source: a link-local address may stand on several

  friend bool operator==(const AhKey&, const AhKey&) = default;
};

struct AhKeyHash {
  std::size_t operator()(const AhKey& key) const noexcept {
    const std::uint64_t small = key.port | (std::uint64_t{key.traffic_class} << 8) |
                                (std::uint64_t{key.service_level} << 16) | (std::uint64_t{key.hop_limit} << 24) |
                                (std::uint64_t{key.static_rate} << 32) | (std::uint64_t{key.source_path_bits} << 40) |
                                (std::uint64_t{key.lid} << 48);
    const std::uint64_t rest = key.flow_label | (std::uint64_t{key.netdev} << 20) |
                               (static_cast<std::uint64_t>(key.source_type) << 56) |
                               (static_cast<std::uint64_t>(key.global) << 60);
    const std::uint64_t gids = std::hash<Gid>{}(key.destination) * 3 + std::hash<Gid>{}(key.source);
    return static_cast<std::size_t>(fold_multiply(small ^ gids ^ 0xa0761d6478bd642fULL,
                                                  rest ^ std::hash<const void*>{}(key.domain) ^ 0x9e3779b97f4a7c15ULL));
  }
};

}  // namespace verbena::ah
