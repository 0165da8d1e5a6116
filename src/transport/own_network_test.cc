// Runs the tests of this room in a network namespace of their own where the system lets them: they take every slot,
// bind the RoCE port and join groups, and must neither meet nor disturb other programs.
#include <cstring>

#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "transport/fd.h"
#include "transport/testing.h"

namespace verbena::transport {
namespace {

bool is_own = false;

class OwnNetwork final : public ::testing::Environment {
 public:
  void SetUp() override {
    if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return;
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
