// A destination in canonical form: six words that are equal where the destinations are. No padding, no masked-off bits.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "verbena/destination.h"

namespace verbena::ah {

inline constexpr std::uint32_t kFlowLabelMask = 0xfffff;

// words: GID (2), source GID (2), what the network is to do, where it leaves.
struct DestinationKey {
  std::array<std::uint64_t, 6> words{};

  friend bool operator==(const DestinationKey& a, const DestinationKey& b) noexcept {
    std::uint64_t difference = 0;  // one branch for all six
    for (std::size_t i = 0; i < a.words.size(); ++i) difference |= a.words[i] ^ b.words[i];
    return difference == 0;
  }
};

// `own_port` is the directory's: port 0 means it, and both are one key.
inline DestinationKey key_of(const Destination& destination, std::uint8_t own_port) noexcept {
  DestinationKey key;
  std::memcpy(key.words.data(), destination.gid.bytes.data(), 16);
  std::memcpy(key.words.data() + 2, destination.source.bytes.data(), 16);
  key.words[4] = (destination.flow_label & kFlowLabelMask) | (std::uint64_t{destination.traffic_class} << 20) |
                 (std::uint64_t{destination.service_level} << 28) | (std::uint64_t{destination.hop_limit} << 36) |
                 (std::uint64_t{destination.static_rate} << 44) | (std::uint64_t{destination.source_path_bits} << 52);
  const std::uint8_t port = destination.port == 0 ? own_port : destination.port;
  key.words[5] = destination.netdev | (std::uint64_t{destination.lid} << 32) | (std::uint64_t{port} << 48);
  return key;
}

inline Destination destination_of(const DestinationKey& key) noexcept {
  Destination destination;
  std::memcpy(destination.gid.bytes.data(), key.words.data(), 16);
  std::memcpy(destination.source.bytes.data(), key.words.data() + 2, 16);
  destination.flow_label = static_cast<std::uint32_t>(key.words[4] & kFlowLabelMask);
  destination.traffic_class = static_cast<std::uint8_t>(key.words[4] >> 20);
  destination.service_level = static_cast<std::uint8_t>(key.words[4] >> 28);
  destination.hop_limit = static_cast<std::uint8_t>(key.words[4] >> 36);
  destination.static_rate = static_cast<std::uint8_t>(key.words[4] >> 44);
  destination.source_path_bits = static_cast<std::uint8_t>(key.words[4] >> 52);
  destination.netdev = static_cast<std::uint32_t>(key.words[5]);
  destination.lid = static_cast<std::uint16_t>(key.words[5] >> 32);
  destination.port = static_cast<std::uint8_t>(key.words[5] >> 48);
  return destination;
}

// The two halves of the 128-bit product, folded: each bit of the result depends on all bits of both.
inline std::uint64_t fold_multiply(std::uint64_t a, std::uint64_t b) noexcept {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// Spreads every field. `seed` is the directory's own, so that a peer cannot choose addresses that collide.
inline std::uint64_t hash_of(const DestinationKey& key, std::uint64_t seed) noexcept {
  constexpr std::uint64_t kA = 0xa0761d6478bd642fULL;
  constexpr std::uint64_t kB = 0xe7037ed1a0b428dbULL;
  constexpr std::uint64_t kC = 0x8ebc6af09c88c6e3ULL;
  constexpr std::uint64_t kD = 0x589965cc75374cc3ULL;
  // Two factors a field: neither is zero but by accident, whatever the field is.
  const std::uint64_t mixed = fold_multiply(key.words[0] ^ seed ^ kA, key.words[1] ^ kB) ^
                              fold_multiply(key.words[2] ^ seed ^ kC, key.words[3] ^ kD) ^
                              fold_multiply(key.words[4] ^ seed ^ kB, key.words[5] ^ kC);
  return fold_multiply(mixed ^ kD, kA);  // neighbours differ in a few bits: spread those once more
}

}  // namespace verbena::ah
