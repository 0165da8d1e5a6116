// Runs the tests of this room in a network namespace of their own where the system lets them: they take every slot,
// bind the RoCE port and join groups, and must neither meet nor disturb other programs.
#include <cstring>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/fd.h"
#include "transport/testing.h"

namespace verbena::transport {
namespace {

bool is_own = false;

// As an ordinary user: root, but of nothing beyond. Programs that are started, like ip, are root there too.
bool become_root_of_own_namespaces() {
  const auto user = std::to_string(::geteuid());
  const auto group = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
  return ::geteuid() == 0;
}

class OwnNetwork final : public ::testing::Environment {
 public:
  void SetUp() override {
    if (::unshare(CLONE_NEWNET) != 0 && !become_root_of_own_namespaces()) return;
    const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    ASSERT_EQ(::ioctl(socket.get(), SIOCSIFFLAGS, &request), 0);
    is_own = true;
  }
};

[[maybe_unused]] const auto* const kOwnNetwork = ::testing::AddGlobalTestEnvironment(new OwnNetwork);

}  // namespace

bool testing::in_own_network() {
  return is_own;
}

}  // namespace verbena::transport
