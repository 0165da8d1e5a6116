#include "transport/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace verbena::transport {
namespace {

TEST(Fd, IsNoneOfTheStandardOnesThoughTheyAreFree) {
  const int kept = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  ::close(STDIN_FILENO);
  const Fd fd(::eventfd(0, EFD_CLOEXEC));
  const bool free = ::fcntl(STDIN_FILENO, F_GETFD) < 0;
  if (kept >= 0) {
    ::dup2(kept, STDIN_FILENO);
    ::close(kept);
  }
  EXPECT_GT(fd.get(), STDERR_FILENO);
  EXPECT_TRUE(free);
  EXPECT_EQ(::fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
}

TEST(Fd, OfNothingIsNothing) {
  EXPECT_FALSE(Fd(-1));
}

}  // namespace
}  // namespace verbena::transport
