// A piece of registered memory in a work request. Laid out as ibv_sge, so that the verbs edge hands its lists on as
// they are.
#pragma once

#include <cstdint>

namespace verbena::engine {

struct Sge {
  std::uint64_t address = 0;
  std::uint32_t length = 0;
  std::uint32_t lkey = 0;
};
static_assert(sizeof(Sge) == 16 && alignof(Sge) == 8);

}  // namespace verbena::engine
