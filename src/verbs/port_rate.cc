#include "verbs/port_rate.h"

#include <array>

namespace verbena::verbs {
namespace {

struct Row {
  long megabits;
  PortRate rate;
};

constexpr std::array<Row, 8> kRows{{
    {400'000, {2, 128, "400 Gb/sec (4X NDR)"}},
    {200'000, {2, 64, "200 Gb/sec (4X HDR)"}},
    {100'000, {2, 32, "100 Gb/sec (4X EDR)"}},
    {50'000, {1, 64, "50 Gb/sec (1X HDR)"}},
    {40'000, {2, 4, "40 Gb/sec (4X QDR)"}},
    {25'000, {1, 32, "25 Gb/sec (1X EDR)"}},
    {10'000, {1, 4, "10 Gb/sec (1X QDR)"}},
    {1, {1, 1, "2.5 Gb/sec (1X SDR)"}},
}};

}  // namespace

PortRate port_rate(long megabits) noexcept {
  for (const Row& row : kRows) {
    if (megabits >= row.megabits) return row.rate;
  }
  return {};
}

}  // namespace verbena::verbs
