// What is to happen to each datagram, drawn from a seed.
#pragma once

#include <cstdint>

#include "base/instant.h"
#include "transport/impair/impair_spec.h"

namespace verbena::transport {

struct ImpairDecision {
  bool lose = false;
  bool duplicate = false;
  bool reorder = false;
  bool corrupt = false;
  bool mark = false;
  unsigned overtakers = 0;       // how many later datagrams pass one that is reordered: 1 to 3
  std::uint64_t corrupt_at = 0;  // a number from which the bit is chosen
  Duration delay{0};
};

// The n-th decision depends on the specification and on n, on nothing else: each takes the same number of draws,
// whatever comes out.
class ImpairPlan {
 public:
  explicit ImpairPlan(const ImpairSpec& spec) noexcept : spec_(spec), state_(spec.seed) {}

  ImpairDecision next() noexcept;

 private:
  std::uint64_t draw() noexcept;
  bool happens(double probability) noexcept;

  ImpairSpec spec_;
  std::uint64_t state_;
};

}  // namespace verbena::transport
