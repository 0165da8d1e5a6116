#include "device/helper.h"

#include <condition_variable>
#include <mutex>

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace verbena::device {
namespace {

// Counts what the helper asks for, and lets a test wait for it.
class CountingWork final : public HelperWork {
 public:
  void serve_control() noexcept override { count(served_); }
  bool arm_doorbells() noexcept override {
    count(armed_);
    return true;
  }
  bool held_back() noexcept override { return held_back_; }
  void disarm_doorbells() noexcept override { count(disarmed_); }
  bool take_in() noexcept override {
    count(taken_in_);
    return false;
  }
  std::optional<Instant> next_timeout() noexcept override { return std::nullopt; }
  Duration tick() noexcept override {
    count(ticks_);
    return std::chrono::milliseconds(1);
  }
  void relieve() noexcept override { count(relieved_); }

  // Waits until `number` is above `than`.
  bool above(int CountingWork::*number, int than) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return this->*number > than; });
  }
  int value(int CountingWork::*number) {
    const std::lock_guard lock(mutex_);
    return this->*number;
  }

  int served_ = 0;
  int armed_ = 0;
  int disarmed_ = 0;
  int taken_in_ = 0;
  int ticks_ = 0;
  int relieved_ = 0;
  std::atomic<bool> held_back_{false};

 private:
  void count(int& number) {
    const std::lock_guard lock(mutex_);
    ++number;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
};

class HelperTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(helper_.start()); }
  void TearDown() override { helper_.stop(); }
  void poll_for_long() {
    for (int i = 0; i < 1100; ++i) helper_.on_empty_poll();
  }
  static transport::Fd ready_descriptor() { return transport::Fd(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)); }

  CountingWork work_;
  Helper helper_{work_};
};

TEST_F(HelperTest, SleepsWithDoorbellsArmedUntilAPacketComes) {
  ASSERT_TRUE(work_.above(&CountingWork::armed_, 0));
  const int before = work_.value(&CountingWork::taken_in_);
  const transport::Fd packets = ready_descriptor();
  ASSERT_TRUE(helper_.add_packets(packets.get()));
  EXPECT_TRUE(work_.above(&CountingWork::taken_in_, before));
}

TEST_F(HelperTest, WatchesWhileTheApplicationPollsAndHelpsWhenItStops) {
  ASSERT_TRUE(work_.above(&CountingWork::armed_, 0));
  EXPECT_FALSE(helper_.watching());
  const int armed = work_.value(&CountingWork::armed_);
  poll_for_long();
  ASSERT_TRUE(work_.above(&CountingWork::ticks_, 0));
  EXPECT_TRUE(work_.above(&CountingWork::relieved_, 0));
  // Nobody polls any more.
  EXPECT_TRUE(work_.above(&CountingWork::armed_, armed));
  EXPECT_FALSE(helper_.watching());
}

TEST_F(HelperTest, GoesOnWatchingAsLongAsTheApplicationPolls) {
  poll_for_long();
  ASSERT_TRUE(work_.above(&CountingWork::ticks_, 0));
  for (int tick = 1; tick < 20; ++tick) {
    helper_.on_empty_poll();
    ASSERT_TRUE(work_.above(&CountingWork::ticks_, tick));
    if (!helper_.watching()) poll_for_long();  // this thread was kept from polling for a whole tick
  }
}

TEST_F(HelperTest, HelpsAtOnceWhenAQueueIsArmed) {
  poll_for_long();
  ASSERT_TRUE(work_.above(&CountingWork::ticks_, 0));
  helper_.on_arm();
  EXPECT_FALSE(helper_.watching());
  const int armed = work_.value(&CountingWork::armed_);
  EXPECT_TRUE(work_.above(&CountingWork::armed_, armed - 1));
}

TEST_F(HelperTest, DoesNotSpinOnPacketsThatAreHeldBack) {
  work_.held_back_ = true;
  const transport::Fd packets = ready_descriptor();
  ASSERT_TRUE(helper_.add_packets(packets.get()));
  helper_.wake();
  const int served = work_.value(&CountingWork::served_);
  ASSERT_TRUE(work_.above(&CountingWork::served_, served - 1));
  const int before = work_.value(&CountingWork::taken_in_);
  for (int i = 0; i < 5; ++i) {
    const int now = work_.value(&CountingWork::served_);
    helper_.wake();
    ASSERT_TRUE(work_.above(&CountingWork::served_, now));
  }
  EXPECT_LE(work_.value(&CountingWork::taken_in_), before + 7) << "once for each waking, and no more";
}

TEST_F(HelperTest, AlwaysServesWhatComesByControl) {
  const transport::Fd control = ready_descriptor();
  for (const bool watching : {false, true}) {
    if (watching) poll_for_long();
    const int before = work_.value(&CountingWork::served_);
    if (!watching) {
      ASSERT_TRUE(helper_.add_control(control.get()));
    }
    EXPECT_TRUE(work_.above(&CountingWork::served_, before)) << watching;
  }
}

}  // namespace
}  // namespace verbena::device
