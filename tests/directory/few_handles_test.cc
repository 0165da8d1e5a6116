// The directory on a device that holds 64 address handles, and looks for those destroyed while a posted send names
// them.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lane.h"

namespace verbena::on_device {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

constexpr std::uint64_t kHandles = 64;
constexpr std::uint32_t kPeers = 1000;

// Read at the first verbs call of the process.
struct Surroundings {
  Surroundings() {
    ::setenv("VERBENA_DEVICES", "lo", 1);
    ::setenv("VERBENA_LIMITS", "max_ah=64", 1);
    ::setenv("VERBENA_STRICT", "on", 1);
    ::setenv("VERBENA_LOG", "error", 1);
  }
};
const Surroundings kSurroundings;

// Every other one is this host by a path of its own, and receives; the rest are hosts where nobody listens.
bool receives(std::uint32_t peer) {
  return peer % 2 == 0;
}
Destination peer(std::uint32_t number) {
  Destination to;
  const auto high = static_cast<std::uint8_t>(receives(number) ? 0 : 1 + number / 250);
  const auto low = static_cast<std::uint8_t>(receives(number) ? 1 : 1 + number % 250);
  to.gid = *parse_gid("127.0." + std::to_string(high) + "." + std::to_string(low));
  if (receives(number)) to.flow_label = 1 + number;
  return to;
}

class FewHandles : public ::testing::Test {
 protected:
  void SetUp() override {
    auto context = Context::open_first_usable();
    ASSERT_TRUE(context) << context.error().message;
    context_ = std::move(*context);
    const auto device = context_.query_device();
    ASSERT_TRUE(device && device->max_ah == kHandles) << "the device has not the limit it was given";
    auto domain = ProtectionDomain::create(context_);
    ASSERT_TRUE(domain) << domain.error().message;
    domain_ = std::move(*domain);
    auto directory = AhDirectory::create(domain_, 1);
    ASSERT_TRUE(directory) << directory.error().message;
    directory_ = std::move(*directory);
  }

  std::unique_ptr<Lane> lane() {
    auto made = Lane::open(context_, domain_, directory_);
    EXPECT_TRUE(made) << made.error().message;
    return made ? std::move(*made) : nullptr;
  }

  Context context_;
  ProtectionDomain domain_;
  AhDirectory directory_;
};

// What a rotation sent and what came of it.
struct Tally {
  std::uint64_t sent = 0;
  std::uint64_t expected = 0;
  std::uint64_t arrived = 0;
  std::uint64_t wrong = 0;
};

void take(Lane& lane, Tally& tally) {
  const Status received = lane.receive([&](std::span<const std::byte> payload, auto, const ibv_wc&) {
    std::uint32_t number = 0;
    if (payload.size() == sizeof number) std::memcpy(&number, payload.data(), sizeof number);
    ++(payload.size() == sizeof number && number < kPeers && receives(number) ? tally.arrived : tally.wrong);
  });
  ASSERT_TRUE(received) << received.error().message;
  const Status polled = lane.poll_sends();
  ASSERT_TRUE(polled) << polled.error().message;
}

// Waits until there is one, however long the others keep theirs: the directory itself waits 200 ms for room.
Result<AhHandle> acquire(AhDirectory& directory, Lane& lane, const Destination& to, Tally& tally) {
  const Deadline deadline = Deadline::in(30s);
  for (;;) {
    auto handle = directory.acquire(to, deadline);
    if (handle || handle.error().code != ErrorCode::kExhausted || deadline.passed()) return handle;
    take(lane, tally);
  }
}

// One datagram to each peer, in an order of its own, waiting for an address where none is ready. `window` sends at most
// are in flight, so that they do not hold all the handles there are.
void rotate(AhDirectory& directory, Lane& lane, std::uint32_t begin, std::uint64_t window, Tally& tally) {
  for (std::uint32_t i = 0; i < kPeers; ++i) {
    const std::uint32_t number = (begin + i * 7) % kPeers;
    while (lane.sender().outstanding() >= window) take(lane, tally);
    AhHandle held;
    ibv_ah* address = lane.sender().next(peer(number));
    if (address == nullptr) {
      auto handle = acquire(directory, lane, peer(number), tally);
      ASSERT_TRUE(handle) << "peer " << number << ": " << handle.error().message;
      held = *handle;
      address = lane.sender().next(held);
      ASSERT_NE(address, nullptr) << "peer " << number;
    }
    const auto payload = std::as_bytes(std::span(&number, 1));
    const Status sent = lane.send(address, lane.qpn(), payload);
    ASSERT_TRUE(sent) << "peer " << number << ": " << sent.error().message;
    ++tally.sent;
    if (receives(number)) ++tally.expected;
    take(lane, tally);
  }
  const Status settled = lane.settle(Deadline::in(30s));
  ASSERT_TRUE(settled) << settled.error().message;
  for (const Deadline end = Deadline::in(5s); tally.arrived < tally.expected && !end.passed();) take(lane, tally);
}

void expect_all_well(const Tally& tally, const Lane& lane) {
  EXPECT_EQ(lane.failed(), 0U);
  EXPECT_EQ(tally.arrived, tally.expected);
  EXPECT_EQ(tally.wrong, 0U);
}

TEST_F(FewHandles, AThousandPeersInRotationAreAllReachedAndNoHandleGoesWhileASendNamesIt) {
  CaptureStderr();
  auto own = lane();
  ASSERT_TRUE(own);
  Tally tally;
  for (std::uint32_t round = 0; round < 5; ++round) rotate(directory_, *own, round, 32, tally);
  EXPECT_EQ(tally.sent, 5 * kPeers);
  expect_all_well(tally, *own);
  const AhStats stats = directory_.stats();
  EXPECT_LE(stats.live, kHandles);
  EXPECT_GE(stats.reclaimed_pressure, kPeers - kHandles) << "the limit was never felt";
  own.reset();
  EXPECT_TRUE(directory_.close(Deadline::in(5s)).empty());
  directory_ = {};
  const Status closed = domain_.close();
  EXPECT_TRUE(closed) << closed.error().message;
  EXPECT_THAT(GetCapturedStderr(), IsEmpty()) << "the device named a handle that was destroyed in flight";
}

TEST_F(FewHandles, FourThreadsInRotationShareThemAndNoneIsRefused) {
  CaptureStderr();
  std::vector<std::unique_ptr<Lane>> lanes;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(lanes.emplace_back(lane()));
  std::vector<Tally> tallies(lanes.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    threads.emplace_back([&, i] {
      // Together fewer in flight than there are handles.
      rotate(directory_, *lanes[i], static_cast<std::uint32_t>(250 * i), 8, tallies[i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < lanes.size(); ++i) expect_all_well(tallies[i], *lanes[i]);
  lanes.clear();
  EXPECT_TRUE(directory_.close(Deadline::in(5s)).empty());
  EXPECT_THAT(GetCapturedStderr(), IsEmpty()) << "the device named a handle that was destroyed in flight";
}

}  // namespace
}  // namespace verbena::on_device
