// What VERBENA_QUIRKS does to a program.
#include <array>
#include <cstdlib>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rig.h"

namespace verbena::abi {
namespace {

constexpr std::size_t kPage = 4096;

class Quirks : public Rig {
 protected:
  // Read at the first verbs call of the process.
  static void SetUpTestSuite() {
    ::setenv("VERBENA_LOG", "info", 1);
    ::setenv("VERBENA_QUIRKS", "memlock,grh_checksum_zero,grh_dirty,wc_sl_unfilled,hop_limit_override", 1);
  }
  // The first IPv4 address of the port.
  ibv_gid_entry ipv4_gid() {
    std::array<ibv_gid_entry, 64> entries{};
    const ssize_t count = ibv_query_gid_table(context_.get(), entries.data(), entries.size(), 0);
    for (ssize_t i = 0; i < count; ++i) {
      const auto& raw = entries[static_cast<std::size_t>(i)].gid.raw;
      if (raw[10] == 0xff && raw[11] == 0xff) return entries[static_cast<std::size_t>(i)];
    }
    ADD_FAILURE() << "no IPv4 address on lo";
    return {};
  }
};

void drop_ipc_lock() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  ASSERT_EQ(0, ::syscall(SYS_capget, &header, data.data()));
  data[0].effective &= ~(1U << CAP_IPC_LOCK);
  ASSERT_EQ(0, ::syscall(SYS_capset, &header, data.data()));
}

TEST_F(Quirks, AReceivedDatagramLooksAsOnThatDevice) {
  auto qp = make_ready_qp();
  ibv_ah_attr attributes = address_of(ipv4_gid());
  attributes.grh.hop_limit = 7;
  Owned<ibv_ah> ah(ibv_create_ah(pd_.get(), &attributes));
  ASSERT_TRUE(ah);
  EXPECT_EQ(64, attributes.grh.hop_limit) << "what is on the handle is written back";
  ASSERT_EQ(0, post_receive(qp.get(), 2));
  ASSERT_EQ(0, post_send(qp.get(), ah.get(), qp->qp_num, 64));
  for (const ibv_wc& completion : take_completions(cq_.get(), 2)) {
    EXPECT_EQ(IBV_WC_SUCCESS, completion.status);
    EXPECT_EQ(0, completion.sl);
  }
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(std::byte{0xee}, receiving()[i]) << i;
  EXPECT_EQ(std::byte{0x45}, receiving()[20]);
  EXPECT_EQ(std::byte{64}, receiving()[20 + 8]) << "the hop limit";
  EXPECT_EQ(std::byte{0}, receiving()[20 + 10]);
  EXPECT_EQ(std::byte{0}, receiving()[20 + 11]);
}

TEST_F(Quirks, RegisteredMemoryCountsAgainstTheLimit) {
  mr_.reset();
  rlimit before{};
  ASSERT_EQ(0, ::getrlimit(RLIMIT_MEMLOCK, &before));
  rlimit lower = before;
  lower.rlim_cur = 2 * kPage;
  ASSERT_EQ(0, ::setrlimit(RLIMIT_MEMLOCK, &lower));
  auto* const page =
      reinterpret_cast<std::byte*>((reinterpret_cast<std::uint64_t>(memory_.data()) + kPage - 1) / kPage * kPage);
  std::thread unprivileged([&] {
    drop_ipc_lock();
    Owned<ibv_mr> fits(ibv_reg_mr(pd_.get(), page, 2 * kPage, 0));
    EXPECT_TRUE(fits);
    errno = 0;
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(nullptr, ibv_reg_mr(pd_.get(), page, 1, 0));
    EXPECT_EQ(ENOMEM, errno);
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("ulimit -l"));
    Owned<ibv_mr> on_demand(ibv_reg_mr(pd_.get(), page, 1, IBV_ACCESS_ON_DEMAND));
    EXPECT_TRUE(on_demand) << "is not locked";
    fits.reset();
    EXPECT_TRUE(Owned<ibv_mr>(ibv_reg_mr(pd_.get(), page, 1, 0)));
  });
  unprivileged.join();
  ASSERT_EQ(0, ::setrlimit(RLIMIT_MEMLOCK, &before));
}

}  // namespace
}  // namespace verbena::abi
