#include "device/memory_window.h"

#include <array>
#include <cerrno>
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/device.h"
#include "device/memory_region.h"

namespace verbena::device {
namespace {

using engine::MemoryFault;
using engine::WindowType;

constexpr Qpn kBinder{17};

class MemoryWindows : public testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("VERBENA_DEVICES", "lo", 1); }

  void SetUp() override {
    auto opened = Context::open(*device_list()[0]);
    ASSERT_TRUE(opened) << opened.error().message;
    context_ = *opened;
    domain_ = ProtectionDomain::create(*context_).value();
    region_ = MemoryRegion::create(*domain_, address(), buffer_.size(), address(),
                                   engine::kLocalWrite | engine::kMemoryWindowBind)
                  .value();
  }

  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(buffer_.data()); }
  engine::BindRequest request(const MemoryWindow& window) {
    return {.domain = &domain_->engine(),
            .by = kBinder,
            .type = window.type(),
            .window = window.key(),
            .key = context_->next_variant(window.key()),
            .region = MemoryKey(region_->key()),
            .address = address(),
            .length = 64,
            .access = engine::kRemoteRead};
  }
  MemoryFault reach(MemoryKey key) {
    std::span<std::byte> bytes;
    return context_->memory().resolve_remote(domain_->engine(), key, address(), 8, engine::kRemoteRead, bytes, kBinder);
  }

  std::array<std::byte, 4096> buffer_{};
  std::shared_ptr<Context> context_;
  std::unique_ptr<ProtectionDomain> domain_;
  std::unique_ptr<MemoryRegion> region_;
};

TEST_F(MemoryWindows, ARegionWithWindowsStays) {
  auto window = MemoryWindow::create(*domain_, WindowType::kType1).value();
  const auto bind = request(*window);
  EXPECT_NE(bind.key, bind.window);
  EXPECT_EQ(bind.key.value() >> 8, bind.window.value() >> 8);
  ASSERT_EQ(context_->bind(bind), MemoryFault::kNone);
  const Status refused = region_->withdraw();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().system_errno, EBUSY);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("1 memory window"));
  EXPECT_EQ(reach(bind.key), MemoryFault::kNone);
  window.reset();
  EXPECT_EQ(reach(bind.key), MemoryFault::kUnknownKey);
  EXPECT_TRUE(region_->withdraw());
}

TEST_F(MemoryWindows, OfAQueuePairThatIsGoneAreFree) {
  auto first = MemoryWindow::create(*domain_, WindowType::kType1).value();
  auto second = MemoryWindow::create(*domain_, WindowType::kType2).value();
  const auto one = request(*first);
  const auto two = request(*second);
  ASSERT_EQ(context_->bind(one), MemoryFault::kNone);
  ASSERT_EQ(context_->bind(two), MemoryFault::kNone);
  context_->free_windows_of(Qpn(18));
  EXPECT_EQ(reach(two.key), MemoryFault::kNone);
  context_->free_windows_of(kBinder);
  EXPECT_EQ(reach(two.key), MemoryFault::kUnknownKey);
  EXPECT_EQ(reach(one.key), MemoryFault::kNone);
}

}  // namespace
}  // namespace verbena::device
