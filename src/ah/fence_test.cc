#include <cerrno>
#include <cstddef>

#include <fake_verbs/ah_world.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace verbena::fake {
namespace {

// From now on membarrier(2) is refused, as a container's filter would that is set late.
bool forbid_membarrier() {
  sock_filter program[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_membarrier},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog filter{.len = 4, .filter = program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

class FenceDeathTest : public AhWorld {
 protected:
  FenceDeathTest() { ::testing::FLAGS_gtest_death_test_style = "threadsafe"; }

  // 0: all was destroyed, and the sender went on finding what is there.
  int use_a_directory_without_membarrier() {
    AhDirectory directory = make_directory();
    AhSender sender = std::move(*directory.make_sender());
    const AhHandle handle = *directory.acquire(to(2), soon());
    if (!forbid_membarrier()) return 2;
    directory.on_network_change({.kind = NetworkChange::Kind::kNeighbour, .netdev = 0, .address = ipv4(2)});
    if (!eventually([] { return destructions() == 1; })) return 3;
    if (sender.next(handle) == nullptr) return 4;
    sender.drained();
    return directory.close(soon()).rows.empty() ? 0 : 5;
  }
};

TEST_F(FenceDeathTest, AKernelThatBeginsToRefuseHoldsUpNothing) {
  EXPECT_EXIT(std::_Exit(use_a_directory_without_membarrier()), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace verbena::fake
