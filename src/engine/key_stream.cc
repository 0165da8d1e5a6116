#include "engine/key_stream.h"

#include <bit>

namespace verbena::engine {
namespace {

struct SipState {
  std::uint64_t v0;
  std::uint64_t v1;
  std::uint64_t v2;
  std::uint64_t v3;

  void rounds(int count) noexcept {
    for (int i = 0; i < count; ++i) {
      v0 += v1;
      v2 += v3;
      v1 = std::rotl(v1, 13) ^ v0;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 = std::rotl(v0, 32);
      v2 += v1;
      v0 += v3;
      v1 = std::rotl(v1, 17) ^ v2;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 = std::rotl(v2, 32);
    }
  }
  void absorb(std::uint64_t word) noexcept {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  }
};

}  // namespace

std::uint64_t KeyStream::next() noexcept {
  SipState state{seed_[0] ^ 0x736f6d6570736575, seed_[1] ^ 0x646f72616e646f6d, seed_[0] ^ 0x6c7967656e657261,
                 seed_[1] ^ 0x7465646279746573};
  state.absorb(counter_++);
  state.absorb(std::uint64_t{sizeof counter_} << 56);  // SipHash ends with the length of its input
  state.v2 ^= 0xff;
  state.rounds(4);
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace verbena::engine
