// Very many askers at once, on the software RNIC.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "lane.h"

namespace verbena::on_device {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kThreads = 128;
constexpr std::uint32_t kDestinations = 1000;

// Read at the first verbs call of the process. Slow enough that the askers do meet.
struct Surroundings {
  Surroundings() {
    ::setenv("VERBENA_DEVICES", "lo", 1);
    ::setenv("VERBENA_INJECT", "create_ah.delay=100us..1ms,seed=3", 1);
    ::setenv("VERBENA_LOG", "error", 0);
  }
};
const Surroundings kSurroundings;

Destination destination(std::uint32_t number) {
  Destination to;
  to.gid = *parse_gid("127.0." + std::to_string(1 + number / 250) + "." + std::to_string(1 + number % 250));
  return to;
}

TEST(Storm, OneHundredTwentyEightThreadsThatAskForTheSameThousandDestinationsMakeEachOnce) {
  const auto context = Context::open_first_usable();
  ASSERT_TRUE(context) << context.error().message;
  const auto domain = ProtectionDomain::create(*context);
  ASSERT_TRUE(domain) << domain.error().message;
  auto directory = AhDirectory::create(*domain, 1);
  ASSERT_TRUE(directory) << directory.error().message;
  std::atomic<std::uint64_t> refused = 0;
  std::vector<std::thread> askers;
  for (unsigned asker = 0; asker < kThreads; ++asker) {
    askers.emplace_back([&, asker] {
      for (std::uint32_t i = 0; i < kDestinations; ++i) {
        // Each begins elsewhere.
        if (!directory->acquire(destination((i + asker * 7) % kDestinations), Deadline::in(100s))) ++refused;
      }
    });
  }
  for (std::thread& asker : askers) asker.join();
  const AhStats stats = directory->stats();
  EXPECT_EQ(refused, 0U);
  EXPECT_EQ(stats.created, kDestinations);
  EXPECT_EQ(stats.ready, kDestinations);
  EXPECT_EQ(stats.live, kDestinations);
  EXPECT_EQ(stats.failed, 0U);
  EXPECT_EQ(stats.handles, 0U);
  EXPECT_TRUE(directory->close(Deadline::in(5s)).empty());
}

}  // namespace
}  // namespace verbena::on_device
