#include "ah/lookup_table.h"

#include <map>
#include <memory>
#include <random>

#include <gtest/gtest.h>

namespace verbena::ah {
namespace {

constexpr std::uint32_t kSeed = 11;

DestinationKey key(std::uint32_t peer) {
  Destination destination;
  destination.gid = Gid::from_ipv4(peer);
  return key_of(destination, 1);
}

TEST(LookupTable, FindsNothingWhenEmpty) {
  const LookupTable table(kSeed);
  EXPECT_EQ(table.find(key(1)), nullptr);
  EXPECT_EQ(table.size(), 0U);
}

TEST(LookupTable, AgreesWithAMapThroughRandomChanges) {
  LookupTable table(kSeed);
  std::map<std::uint32_t, std::unique_ptr<Binding>> model;
  std::vector<std::unique_ptr<LookupTable::Array>> retired;
  std::mt19937 random(kSeed);
  for (int step = 0; step < 50000; ++step) {
    const auto peer = static_cast<std::uint32_t>(random() % 300);
    std::unique_ptr<Binding>& slot = model[peer];
    if (slot) {
      table.erase(slot.get());
      slot.reset();
    } else {
      slot = std::make_unique<Binding>(key(peer));
      table.insert(slot.get());
    }
    const auto asked = static_cast<std::uint32_t>(random() % 300);
    const auto found = model.find(asked);
    ASSERT_EQ(table.find(key(asked)), found == model.end() ? nullptr : found->second.get()) << "seed " << kSeed;
    for (auto& array : table.take_retired()) retired.push_back(std::move(array));
  }
  std::size_t present = 0;
  for (const auto& [peer, binding] : model) present += binding ? 1U : 0U;
  EXPECT_EQ(table.size(), present);
  std::size_t visited = 0;
  table.for_each([&](const Binding&) { ++visited; });
  EXPECT_EQ(visited, present);
}

TEST(LookupTable, ChurnDoesNotGrowIt) {
  LookupTable table(kSeed);
  std::size_t largest = 0;
  for (std::uint32_t i = 0; i < 100000; ++i) {
    auto binding = std::make_unique<Binding>(key(i));
    table.insert(binding.get());
    table.erase(binding.get());
    for (const auto& array : table.take_retired()) largest = std::max(largest, array->mask);
  }
  EXPECT_LE(largest, 63U);
}

}  // namespace
}  // namespace verbena::ah
