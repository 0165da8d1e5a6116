// A network namespace for one test: made in a child process, gone with it.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace verbena::testing {

inline constexpr int kNotAllowed = 77;

// As root of a user namespace where this user may not make a network namespace otherwise.
inline bool enter_own_namespace() {
  if (::unshare(CLONE_NEWNET) == 0) return true;
  const uid_t user = ::getuid();
  const gid_t group = ::getgid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
  std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
  return true;
}

// Runs `body` there. What it expects in vain fails the test; where namespaces are not allowed the test is skipped.
// Requires: no other thread runs.
inline void in_own_namespace(const std::function<void()>& body) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!enter_own_namespace()) ::_exit(kNotAllowed);
    body();
    std::fflush(nullptr);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotAllowed) {
    GTEST_SKIP() << "this user may not make network namespaces";
  }
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "failed in the namespace, status " << status;
}

inline void ip(const std::string& words) {
  EXPECT_EQ(std::system(("ip " + words).c_str()), 0) << "ip " << words;
}

// Before that the kernel throws away what is sent on an interface.
inline void wait_until_up(const std::string& name) {
  const std::string asks = "ip -o link show " + name + " | grep -q 'state UP'";
  for (int round = 0; round < 500; ++round) {
    if (std::system(asks.c_str()) == 0) return;
    ::usleep(20'000);
  }
  ADD_FAILURE() << name << " does not come up";
}

// Two joined interfaces, `one` with 10.9.0.1/24 and fd09::1/64, both up.
inline void add_wire(const std::string& one = "one", const std::string& other = "other") {
  ip("link add " + one + " type veth peer name " + other);
  ip("link set " + one + " up");
  ip("link set " + other + " up");
  ip("address add 10.9.0.1/24 dev " + one);
  ip("address add fd09::1/64 dev " + one + " nodad");
}

}  // namespace verbena::testing
