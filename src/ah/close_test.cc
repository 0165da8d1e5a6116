// A directory that closes while something of it is at the device, and what asks it afterwards.
#include <array>
#include <atomic>
#include <latch>
#include <string>
#include <utility>

#include <fake_verbs/ah_world.h>

#include "verbena/release_failure.h"
#include "verbena/tenant.h"

namespace verbena::fake {
namespace {

class Closing : public AhWorld {
 protected:
  static ibv_async_event gid_change() {
    const ibv_async_event event = event_of(IBV_EVENT_GID_CHANGE);
    return event;
  }

  static AhDirectoryOptions untold() {
    AhDirectoryOptions options = AhWorld::options();
    options.watch_async_events = false;
    return options;
  }

  Context own = std::move(*Context::open("fake0"));
  Tenant tenant = std::move(*Tenant::create(own, {.name = "closing"}));
  AhDirectory directory = std::move(*tenant.directory(1, untold()));
};

TEST_F(Closing, ADirectoryThatOutlivesItsDeviceAsksItNothing) {
  const AhHandle handle = *directory.acquire(to(2), soon());
  directory.on_async_event(gid_change());
  ASSERT_TRUE(tenant.close(soon()).complete());
  ASSERT_TRUE(own.close());
  const PortSpeed far{.bits_per_second = 10'000'000'000};
  EXPECT_EQ(int{directory.paced(to(2), far).static_rate}, int{rate_for_path({}, far)});
  EXPECT_EQ(directory.effective(handle).error().code, ErrorCode::kUnavailable);
  ibv_wc completion{};
  completion.wc_flags = IBV_WC_GRH;
  EXPECT_EQ(directory.reply_to(completion, std::array<std::byte, 40>{}).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(violations().asked_after_close, 0U);
}

TEST_F(Closing, TheDomainStaysWhileAThreadReadsTheTable) {
  std::latch go(1);
  std::atomic<bool> reads = false;
  set_table_hook([&] {
    reads = true;
    go.wait();
  });
  directory.on_async_event(gid_change());
  ASSERT_TRUE(eventually([&] { return reads.load(); }));
  const TenantRelease released = tenant.close(Deadline::at({}));
  EXPECT_FALSE(released.complete());
  EXPECT_THAT(released.in_words(), ::testing::HasSubstr("has not returned"));
  EXPECT_FALSE(own.close());
  go.count_down();
  EXPECT_TRUE(tenant.close(soon()).complete());
  EXPECT_TRUE(own.close());
  set_table_hook({});
}

TEST_F(Closing, TheHandlerOfReleaseFailuresMayDestroyASender) {
  std::array<std::byte, 64> memory{};
  ibv_mr* const region = ibv_reg_mr(domain.get(), memory.data(), memory.size(), 0);  // the domain is kept by it
  AhDirectory last = make_directory();
  AhSender sender = std::move(*last.make_sender());
  domain = ProtectionDomain();
  std::string reported;
  set_release_failure_handler([&](const Error& error) {
    sender = AhSender();
    reported += error.message;
  });
  last = AhDirectory();
  set_release_failure_handler({});
  EXPECT_THAT(reported, ::testing::HasSubstr("protection domain on fake0"));
  ibv_dereg_mr(region);
}

}  // namespace
}  // namespace verbena::fake
