#include "ah/announcer.h"

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

namespace verbena::ah {
namespace {

using Kind = AhEvent::Kind;

AhEvent event_of(std::uint64_t generation) {
  AhEvent event;
  event.generation = generation;
  return event;
}

TEST(Announcer, ASubscriberMayLeaveWhileItStops) {
  Announcer announcer;
  std::latch begun(1);
  std::latch go(1);
  Announcer::Ticket ticket = 0;
  bool first = true;
  ticket = announcer.subscribe([&](const AhEvent&) {
    if (std::exchange(first, false)) {
      begun.count_down();
      go.wait();
      // From when stop() has begun, a call is made at once, on the thread of who asks for it.
      const auto stops = std::make_shared<bool>(false);
      while (!*stops) announcer.call([stops] { *stops = true; });
      announcer.unsubscribe(ticket);
    }
  });
  announcer.announce(event_of(0));
  begun.wait();
  std::thread stopper([&] { announcer.stop(); });
  go.count_down();
  stopper.join();
}

TEST(Announcer, TellsOfTheEndOfABurstThatItDropped) {
  Announcer announcer;
  std::latch begun(1);
  std::latch go(1);
  std::atomic<std::uint64_t> dropped{0};
  bool first = true;
  announcer.subscribe([&](const AhEvent& event) {
    if (std::exchange(first, false)) {
      begun.count_down();
      go.wait();
    }
    if (event.kind == Kind::kDropped) dropped += event.count;
  });
  announcer.announce(event_of(0));
  begun.wait();
  for (std::size_t i = 0; i < Announcer::kMostWaiting + 5; ++i) announcer.announce(event_of(i));
  go.count_down();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (dropped != 5 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(dropped, 5U);
}

TEST(Announcer, ASlowSubscriberDoesNotHoldUpTheEndAndLearnsWhatItMissed) {
  constexpr std::uint64_t kEvents = 4000;
  Announcer announcer;
  std::uint64_t heard = 0;
  std::uint64_t dropped = 0;
  std::atomic<int> calls{0};
  announcer.subscribe([&](const AhEvent& event) {
    const auto slow = std::chrono::steady_clock::now() + std::chrono::milliseconds(10);
    while (std::chrono::steady_clock::now() < slow) std::this_thread::yield();
    (event.kind == Kind::kDropped ? dropped : heard) += event.kind == Kind::kDropped ? event.count : 1;
  });
  for (std::uint64_t i = 0; i < kEvents; ++i) announcer.announce(event_of(i));
  announcer.call([&] { ++calls; });
  announcer.stop();
  EXPECT_EQ(heard + dropped, kEvents);
  EXPECT_GT(dropped, kEvents / 2);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace verbena::ah
