#include "transport/impair/impair_plan.h"

namespace verbena::transport {

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
std::uint64_t ImpairPlan::draw() noexcept {
  std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

bool ImpairPlan::happens(double probability) noexcept {
  return static_cast<double>(draw() >> 11) * 0x1p-53 < probability;
}

ImpairDecision ImpairPlan::next() noexcept {
  ImpairDecision decision;
  decision.lose = happens(spec_.loss);
  decision.duplicate = happens(spec_.duplicate);
  decision.reorder = happens(spec_.reorder);
  decision.corrupt = happens(spec_.corrupt);
  if (spec_.mark > 0) decision.mark = happens(spec_.mark);  // else the draws stay as they are without marks
  decision.overtakers = 1 + static_cast<unsigned>(draw() % 3);
  decision.corrupt_at = draw();
  const auto jitter = draw() % (static_cast<std::uint64_t>(spec_.jitter.count()) + 1);
  decision.delay = spec_.delay + Duration(static_cast<std::int64_t>(jitter));
  return decision;
}

}  // namespace verbena::transport
