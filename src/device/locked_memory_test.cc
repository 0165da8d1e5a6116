#include "device/locked_memory.h"

#include <array>
#include <cerrno>
#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace verbena::device {
namespace {

constexpr std::uint64_t kPage = 4096;

// Runs on a thread of its own without CAP_IPC_LOCK, with room for `pages`.
void with_limit(std::uint64_t pages, const std::function<void()>& body) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &before), 0);
  rlimit lower = before;
  lower.rlim_cur = pages * kPage;
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &lower), 0);
  std::thread unprivileged([&body] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, 2> data{};
    ASSERT_EQ(::syscall(SYS_capget, &header, data.data()), 0);
    data[0].effective &= ~(1U << CAP_IPC_LOCK);
    ASSERT_EQ(::syscall(SYS_capset, &header, data.data()), 0);
    body();
  });
  unprivileged.join();
  ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

TEST(LockedMemory, CountsWholePagesUpToTheLimit) {
  with_limit(3, [] {
    auto two = LockedMemory::charge(kPage - 1, 2);
    ASSERT_TRUE(two) << "one byte in each of two pages";
    const auto refused = LockedMemory::charge(10 * kPage, kPage + 1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().system_errno, ENOMEM);
    EXPECT_THAT(refused.error().message, testing::HasSubstr("ulimit -l"));
    EXPECT_THAT(refused.error().message, testing::HasSubstr("12288")) << "the limit";
    EXPECT_TRUE(LockedMemory::charge(10 * kPage, kPage)) << "what was refused does not count";
    *two = LockedMemory();
    EXPECT_TRUE(LockedMemory::charge(10 * kPage, 3 * kPage));
  });
}

}  // namespace
}  // namespace verbena::device
