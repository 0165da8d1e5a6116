// A destination in canonical form: six words that are equal where the destinations are. They are the bytes of the
// Destination itself, which has no padding, with nothing in them that does not count.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "verbena/destination.h"

namespace verbena::ah {

inline constexpr std::uint32_t kFlowLabelMask = 0xfffff;

using DestinationWords = std::array<std::uint64_t, 6>;
static_assert(sizeof(Destination) == sizeof(DestinationWords) && std::has_unique_object_representations_v<Destination>,
              "no padding, so that equal destinations are equal words");

struct DestinationKey {
  DestinationWords words{};

  // One branch for all six, and no vector register: the words were written one by one a moment ago.
  friend bool operator==(const DestinationKey& a, const DestinationKey& b) noexcept {
    const auto differs = [&a, &b](std::size_t i) { return a.words[i] ^ b.words[i]; };
    return (differs(0) | differs(1) | differs(2) | differs(3) | differs(4) | differs(5)) == 0;
  }
};

// Of the fifth word, what counts: not what is above the 20 bits of the flow label. The same on either byte order, as
// the next.
inline constexpr std::uint64_t kFifthWordMask = [] {
  Destination beyond;
  beyond.flow_label = ~kFlowLabelMask;
  return ~std::bit_cast<DestinationWords>(beyond)[4];
}();

// Where the port stands in the last word.
inline constexpr int kPortShift = [] {
  Destination only;
  only.hop_limit = 0;
  only.port = 1;
  return std::countr_zero(std::bit_cast<DestinationWords>(only)[5]);
}();

// `own_port` is the directory's: port 0 means it, and both are one key.
inline DestinationKey key_of(const Destination& destination, std::uint8_t own_port) noexcept {
  DestinationKey key;
  std::memcpy(key.words.data(), &destination, sizeof key.words);
  key.words[4] &= kFifthWordMask;
  if (destination.port == 0) key.words[5] |= std::uint64_t{own_port} << kPortShift;
  return key;
}

inline Destination destination_of(const DestinationKey& key) noexcept {
  return std::bit_cast<Destination>(key.words);
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
  const auto& [gid_low, gid_high, source_low, source_high, treatment, exit] = key.words;
  // No factor is zero but by accident: of what a peer chooses, both have the seed. The last product spreads once more
  // what differs in a few bits between neighbours. Few name their source.
  std::uint64_t mixed = fold_multiply(gid_low ^ seed ^ kB, gid_high ^ std::rotl(seed, 32) ^ kA) ^ treatment;
  if ((source_low | source_high) != 0) [[unlikely]]
    mixed ^= fold_multiply(source_low ^ kC, source_high ^ kD);
  return fold_multiply(mixed, exit ^ kB);
}

}  // namespace verbena::ah
