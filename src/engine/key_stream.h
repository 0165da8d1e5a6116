// A stream of 64-bit numbers from a secret seed, from which keys are drawn: SipHash-2-4 of a counter. Who sees many of
// them can neither foresee the next nor learn the seed. Equal seeds give equal streams.
#pragma once

#include <array>
#include <cstdint>

namespace verbena::engine {

using KeySeed = std::array<std::uint64_t, 2>;

class KeyStream {
 public:
  explicit KeyStream(KeySeed seed, std::uint64_t first = 0) noexcept : seed_(seed), counter_(first) {}
  std::uint64_t next() noexcept;

 private:
  KeySeed seed_;
  std::uint64_t counter_;
};

}  // namespace verbena::engine
