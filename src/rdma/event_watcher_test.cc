#include "rdma/event_watcher.h"

#include <thread>
#include <vector>

#include <fake_verbs/fake_verbs.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "verbena/device.h"

namespace verbena::rdma {
namespace {

TEST(EventWatcher, IsGoneBeforeTheNextOfItsContextBegins) {
  fake::reset();
  fake::add_device("fake0");
  const Context context = std::move(*Context::open("fake0"));
  const int stream = context.get()->async_fd;
  const int before = ::fcntl(stream, F_GETFL);
  ASSERT_EQ(before & O_NONBLOCK, 0);
  std::vector<std::thread> users;
  for (int i = 0; i < 3; ++i) {
    users.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        const auto watcher = EventWatcher::of(context.get());
        ASSERT_TRUE(watcher);
        EXPECT_NE(::fcntl(stream, F_GETFL) & O_NONBLOCK, 0) << "whoever watches must not block";
      }
    });
  }
  for (std::thread& user : users) user.join();
  EXPECT_EQ(::fcntl(stream, F_GETFL), before);
}

TEST(EventWatcher, WithoutAThreadLeavesTheStreamAsItWas) {
  fake::reset();
  fake::add_device("fake0");
  const Context context = std::move(*Context::open("fake0"));
  const int before = ::fcntl(context.get()->async_fd, F_GETFL);
  pthread_attr_t usual;
  ASSERT_EQ(::pthread_getattr_default_np(&usual), 0);
  pthread_attr_t endless = usual;
  ::pthread_attr_setstacksize(&endless, std::size_t{1} << 47);  // more than there are addresses
  ASSERT_EQ(::pthread_setattr_default_np(&endless), 0);
  const auto watcher = EventWatcher::of(context.get());
  ASSERT_EQ(::pthread_setattr_default_np(&usual), 0);
  if (watcher) GTEST_SKIP() << "threads have stacks of another's choice here";
  EXPECT_EQ(::fcntl(context.get()->async_fd, F_GETFL), before);
  EXPECT_TRUE(EventWatcher::of(context.get()));
}

}  // namespace
}  // namespace verbena::rdma
