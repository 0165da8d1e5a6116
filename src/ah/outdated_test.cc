// An attempt that goes by what was so a moment ago, while that changes: its failure is nobody's.
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>

#include <fake_verbs/ah_world.h>

namespace verbena::fake {
namespace {

using Kind = NetworkChange::Kind;

// Where an attempt stops until a test has changed what it goes by.
class Gate {
 public:
  // Of the first that comes; the others pass.
  void stop() {
    std::unique_lock lock(mutex_);
    if (taken_) return;
    taken_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void await() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return taken_; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool taken_ = false;
  bool open_ = false;
};

class Outdated : public AhWorld {
 protected:
  // Of failures, one that a second attempt is not told of.
  static void expect_no_failure(const AhDirectory& directory, const AhTicket& ticket) {
    const Result<AhHandle> handle = ticket.wait(soon());
    EXPECT_TRUE(handle) << handle.error().message;
    EXPECT_EQ(directory.stats().failed, 0U);
  }

  Gate gate;
};

TEST_F(Outdated, ARouteThatAppearsWhileItsAbsenceIsReportedIsTaken) {
  AhDirectoryOptions with = options();
  std::atomic<bool> has_route = false;
  with.routes = [&](const Gid& to, std::uint32_t netdev) -> Result<Route> {
    const bool has_it = has_route;
    if (netdev != 0) gate.stop();  // the last that an attempt asks
    if (has_it) return usual_route(to, 0);
    return failure(ErrorCode::kUnreachable, "the kernel has no route", ENETUNREACH);
  };
  AhDirectory directory = make_directory(with);
  AhTicket ticket = directory.acquire_async(to(2));
  gate.await();
  has_route = true;
  directory.on_network_change({.kind = Kind::kRoute, .address = ipv4(0), .prefix_length = 96 + 8});
  gate.open();
  expect_no_failure(directory, ticket);
}

TEST_F(Outdated, ARouteToOthersDoesNotMakeAFailureUndone) {
  AhDirectoryOptions with = options();
  with.routes = [&](const Gid&, std::uint32_t) -> Result<Route> {
    gate.stop();
    return failure(ErrorCode::kUnreachable, "the kernel has no route", ENETUNREACH);
  };
  AhDirectory directory = make_directory(with);
  AhTicket ticket = directory.acquire_async(to(2));
  gate.await();
  directory.on_network_change({.kind = Kind::kRoute, .address = Gid::from_ipv4(0xc0000200), .prefix_length = 96 + 24});
  gate.open();
  EXPECT_FALSE(ticket.wait(soon()));
  EXPECT_EQ(directory.stats().failed, 1U);
}

TEST_F(Outdated, ANeighbourThatAnswersWhileItIsGivenUpIsReached) {
  set_create_hook([&, first = std::make_shared<std::atomic<bool>>(true)](const ibv_ah_attr&) {
    if (!first->exchange(false)) return 0;
    gate.stop();
    return ETIMEDOUT;
  });
  AhDirectory directory = make_directory();
  AhTicket ticket = directory.acquire_async(to(2));
  gate.await();
  directory.on_network_change(
      {.kind = Kind::kNeighbour, .netdev = kNetdev, .address = ipv4(2), .mac = MacAddress{2, 0, 0, 0, 0, 1}});
  gate.open();
  expect_no_failure(directory, ticket);
}

TEST_F(Outdated, AnAddressThatComesBackWhileItsAbsenceIsReportedIsTaken) {
  set_gids("fake0", 1, {});
  AhDirectory directory = make_directory();
  const AhHandle none = directory.acquire(to(3), soon()).value_or(AhHandle{});
  ASSERT_FALSE(none);
  ASSERT_TRUE(eventually([&] { return directory.stats().pending == 0; }));
  // What that attempt left to be looked at is done before what an event asks for.
  const ibv_async_event event = event_of(IBV_EVENT_GID_CHANGE);
  const std::uint64_t reads = table_reads();
  directory.on_async_event(event);
  ASSERT_TRUE(eventually([&] { return table_reads() > reads; }));
  set_table_hook([this] { gate.stop(); });
  AhTicket ticket = directory.acquire_async(to(2));
  gate.await();  // it has read the table without the address
  set_gids("fake0", 1, usual_gids());
  directory.on_async_event(event);
  // In one step with what makes the attempt anew, what had failed before may be asked for again.
  ASSERT_TRUE(eventually([&] { return directory.acquire(to(3), soon()).has_value(); }));
  const std::uint64_t failed = directory.stats().failed;
  gate.open();
  EXPECT_TRUE(ticket.wait(soon()));
  EXPECT_EQ(directory.stats().failed, failed);
  set_table_hook({});
}

// Whatever happens in each attempt: who waits is answered after the second.
TEST_F(Outdated, AnAttemptIsMadeAnewOnce) {
  AhDirectory directory;
  std::atomic<int> attempts = 0;
  set_create_hook([&](const ibv_ah_attr&) {
    ++attempts;
    directory.on_network_change({.kind = Kind::kRoute, .address = ipv4(0), .prefix_length = 96 + 8});
    return ETIMEDOUT;
  });
  directory = make_directory();
  const AhTicket ticket = directory.acquire_async(to(2));
  EXPECT_FALSE(ticket.wait(soon()));
  EXPECT_EQ(2, attempts);
  EXPECT_EQ(1U, directory.stats().failed);
  // The second was outdated too: it says nothing of now.
  EXPECT_FALSE(directory.acquire(to(2), soon()));
  EXPECT_EQ(4, attempts);
}

// The kernel says so whenever a lifetime is extended.
TEST_F(Outdated, AnAddressThatIsToldOfAgainEndsNoBackOff) {
  set_create_hook([](const ibv_ah_attr& wanted) { return wanted.grh.dgid.raw[15] == 2 ? ETIMEDOUT : 0; });
  AhDirectory directory = make_directory();
  EXPECT_FALSE(directory.acquire(to(2), soon()));
  const std::uint64_t asked = attempts();
  directory.on_network_change({.kind = Kind::kAddress, .netdev = kNetdev, .address = ipv4(1)});
  const AhHandle other = *directory.acquire(to(3), soon());
  EXPECT_FALSE(directory.acquire(to(2), soon()));
  EXPECT_EQ(asked + 1, attempts());
  EXPECT_EQ(1U, directory.stats().negative_hits);
}

// Two destinations that come to one handle: the second joins when what refuses the first is outdated already.
TEST_F(Outdated, WhoJoinsIsNotToldTheOldFailure) {
  set_create_hook([&, first = std::make_shared<std::atomic<bool>>(true)](const ibv_ah_attr&) {
    if (!first->exchange(false)) return 0;
    gate.stop();
    return ETIMEDOUT;
  });
  AhDirectory directory = make_directory();
  AhTicket ticket = directory.acquire_async(to(2));
  gate.await();
  directory.on_network_change({.kind = Kind::kRoute, .address = ipv4(0), .prefix_length = 96 + 8});
  Destination same = to(2);
  same.netdev = kNetdev;
  AhTicket joined = directory.acquire_async(same);
  // It has joined when another, asked for after it, is there: the others of the pool are idle.
  ASSERT_TRUE(directory.acquire(to(3), soon()));
  gate.open();
  expect_no_failure(directory, ticket);
  expect_no_failure(directory, joined);
}

// What had an address and lost it with the port's own is tried again of itself, however many there are.
TEST_F(Outdated, ManyMoreThanMaxNegativeComeBack) {
  AhDirectoryOptions with = options();
  with.max_negative = 16;
  AhDirectory directory = make_directory(with);
  AhSender sender = std::move(*directory.make_sender());
  constexpr std::uint32_t kPeers = 1'000;
  for (std::uint32_t peer = 2; peer < 2 + kPeers; ++peer) ASSERT_TRUE(directory.acquire(to(peer), soon()));
  set_gids("fake0", 1, {});
  const ibv_async_event event = event_of(IBV_EVENT_GID_CHANGE);
  directory.on_async_event(event);
  ASSERT_TRUE(eventually([&] { return directory.stats().failed >= kPeers && directory.stats().pending == 0; }));
  set_gids("fake0", 1, usual_gids());
  directory.on_async_event(event);
  EXPECT_TRUE(eventually([&] { return directory.stats().ready == kPeers; })) << directory.stats().ready;
  for (std::uint32_t peer = 2; peer < 2 + kPeers; ++peer) EXPECT_NE(nullptr, sender.next(to(peer))) << peer;
  sender.drained();
}

class OfADeadDevice : public Outdated {
 protected:
  // Of the attempt that stands at the gate, once the device is gone.
  void expect_unavailable(AhDirectory& directory, const AhTicket& ticket) {
    gate.await();
    const ibv_async_event event = event_of(IBV_EVENT_DEVICE_FATAL);
    directory.on_async_event(event);
    gate.open();
    const Result<AhHandle> answer = ticket.wait(soon());
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable) << answer.error().message;
  }
};

TEST_F(OfADeadDevice, ATableThatShowsNothingIsNotWhatIsWrong) {
  set_gids("fake0", 1, {});
  AhDirectory directory = make_directory();
  set_table_hook([this] { gate.stop(); });
  expect_unavailable(directory, directory.acquire_async(to(2)));
  set_table_hook({});
}

TEST_F(OfADeadDevice, ARefusalIsNotWhatIsWrong) {
  set_create_hook([this](const ibv_ah_attr&) {
    gate.stop();
    return EHOSTUNREACH;
  });
  AhDirectory directory = make_directory();
  expect_unavailable(directory, directory.acquire_async(to(2)));
}

}  // namespace
}  // namespace verbena::fake
