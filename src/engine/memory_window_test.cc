#include "engine/memory_window.h"

#include <atomic>
#include <cerrno>
#include <thread>

#include <gtest/gtest.h>

#include "engine/memory_table.h"

namespace verbena::engine {
namespace {

constexpr Qpn kBinder{17};
constexpr Qpn kOther{18};

class MemoryWindowTest : public ::testing::Test {
 public:
  MemoryWindowTest() {
    EXPECT_TRUE(table_.insert(region_));
    EXPECT_TRUE(table_.insert(readable_));
    EXPECT_TRUE(table_.insert(closed_));
    EXPECT_TRUE(table_.insert(first_));
    EXPECT_TRUE(table_.insert(second_));
  }
  static MemoryKey variant(MemoryKey key, std::uint32_t by) {
    return MemoryKey((key.value() & ~0xffU) | ((key.value() + by) & 0xff));
  }
  BindRequest request(const MemoryWindow& window, std::uint64_t address = 0x500010, std::uint64_t length = 0x20,
                      AccessFlags access = kRemoteRead | kRemoteWrite) {
    return {.domain = &domain_,
            .by = kBinder,
            .type = window.type(),
            .window = window.key(),
            .key = variant(window.key(), 1),
            .region = region_.key,
            .address = address,
            .length = length,
            .access = access};
  }
  MemoryFault reach(MemoryKey key, std::uint64_t address, std::uint32_t length, Qpn by = kBinder,
                    AccessFlags access = kRemoteRead) {
    return table_.resolve_remote(domain_, key, address, length, access, bytes_, by);
  }

  ProtectionDomain domain_{1};
  ProtectionDomain other_domain_{2};
  MemoryTable table_{64, {1, 2}};
  MemoryRegion region_{&domain_, 0x1000, 0x100, 0x500000, kMemoryWindowBind | kLocalWrite, {}};
  MemoryRegion readable_{&domain_, 0x1000, 0x100, 0x500000, kMemoryWindowBind, {}};
  MemoryRegion closed_{&domain_, 0x1000, 0x100, 0x500000, kLocalWrite | kRemoteRead | kRemoteWrite, {}};
  MemoryWindow first_{domain_, WindowType::kType1};
  MemoryWindow second_{domain_, WindowType::kType2};
  std::span<std::byte> bytes_;
};

TEST_F(MemoryWindowTest, GivesNothingUntilItIsBound) {
  for (const MemoryWindow* window : {&first_, &second_}) {
    EXPECT_EQ(reach(window->key(), 0x500010, 1), MemoryFault::kUnknownKey);
    EXPECT_EQ(reach(window->key(), 0, 1), MemoryFault::kUnknownKey);
    EXPECT_EQ(table_.find(window->key()), nullptr);
  }
}

TEST_F(MemoryWindowTest, GivesThePartThatWasBoundUnderTheNewKeyOnly) {
  for (MemoryWindow* window : {&first_, &second_}) {
    const MemoryKey before = window->key();
    const BindRequest bind = request(*window);
    ASSERT_EQ(table_.bind(bind), MemoryFault::kNone);
    EXPECT_EQ(window->key(), bind.key);
    EXPECT_EQ(reach(before, 0x500010, 1), MemoryFault::kUnknownKey);
    EXPECT_EQ(reach(bind.key, 0x500010, 0x20), MemoryFault::kNone);
    EXPECT_EQ(reinterpret_cast<std::uint64_t>(bytes_.data()), 0x1010U);
    EXPECT_EQ(bytes_.size(), 0x20U);
    EXPECT_EQ(reach(bind.key, 0x50000f, 1), MemoryFault::kOutOfBounds);
    EXPECT_EQ(reach(bind.key, 0x500030, 1), MemoryFault::kOutOfBounds);
    EXPECT_EQ(reach(bind.key, 0x500010, 0x21), MemoryFault::kOutOfBounds);
    EXPECT_EQ(reach(bind.key, 0x500010, 8, kBinder, kRemoteAtomic), MemoryFault::kNoAccess);
    EXPECT_EQ(table_.resolve_remote(other_domain_, bind.key, 0x500010, 1, kRemoteRead, bytes_, kBinder),
              MemoryFault::kOtherDomain);
  }
}

TEST_F(MemoryWindowTest, IsNoLocalKey) {
  const BindRequest bind = request(first_);
  ASSERT_EQ(table_.bind(bind), MemoryFault::kNone);
  EXPECT_EQ(table_.resolve(domain_, {0x500010, 1, bind.key.value()}, kLocalRead, bytes_), MemoryFault::kUnknownKey);
}

TEST_F(MemoryWindowTest, TypeOneIsForEveryQueuePairAndTypeTwoForTheBinder) {
  const BindRequest one = request(first_);
  const BindRequest two = request(second_);
  ASSERT_EQ(table_.bind(one), MemoryFault::kNone);
  ASSERT_EQ(table_.bind(two), MemoryFault::kNone);
  EXPECT_EQ(reach(one.key, 0x500010, 1, kOther), MemoryFault::kNone);
  EXPECT_EQ(reach(two.key, 0x500010, 1, kOther), MemoryFault::kOtherQueuePair);
  EXPECT_EQ(table_.resolve_remote(domain_, two.key, 0x500010, 1, kRemoteRead, bytes_), MemoryFault::kOtherQueuePair);
  EXPECT_TRUE(second_.bound_by(kBinder));
  EXPECT_FALSE(second_.bound_by(kOther));
  EXPECT_FALSE(first_.bound_by(kBinder));
}

TEST_F(MemoryWindowTest, TypeOneIsBoundAnewAndUnboundByLengthZero) {
  ASSERT_EQ(table_.bind(request(first_)), MemoryFault::kNone);
  const BindRequest again = request(first_, 0x500040, 8);
  ASSERT_EQ(table_.bind(again), MemoryFault::kNone);
  EXPECT_EQ(region_.bound_windows, 1U);
  EXPECT_EQ(reach(again.key, 0x500040, 8), MemoryFault::kNone);
  const BindRequest nothing = request(first_, 0, 0, 0);
  ASSERT_EQ(table_.bind(nothing), MemoryFault::kNone);
  EXPECT_EQ(region_.bound_windows, 0U);
  EXPECT_EQ(reach(again.key, 0x500040, 8), MemoryFault::kUnknownKey);
  EXPECT_EQ(reach(nothing.key, 0x500040, 8), MemoryFault::kUnknownKey);
}

TEST_F(MemoryWindowTest, TypeTwoIsBoundOnlyWhenFree) {
  const BindRequest bind = request(second_);
  EXPECT_EQ(table_.bind(request(second_, 0x500010, 0)), MemoryFault::kWindowState);
  ASSERT_EQ(table_.bind(bind), MemoryFault::kNone);
  EXPECT_EQ(table_.bind(request(second_)), MemoryFault::kWindowState);
  ASSERT_EQ(table_.invalidate(domain_, bind.key, kBinder), MemoryFault::kNone);
  EXPECT_EQ(region_.bound_windows, 0U);
  EXPECT_EQ(reach(bind.key, 0x500010, 1), MemoryFault::kUnknownKey);
  EXPECT_EQ(table_.bind(bind), MemoryFault::kNone) << "the variant is the caller's, also the one before";
}

TEST_F(MemoryWindowTest, OnlyTheBinderInvalidatesAndOnlyWhatIsBound) {
  const BindRequest one = request(first_);
  const BindRequest two = request(second_);
  EXPECT_EQ(table_.invalidate(domain_, second_.key(), kBinder), MemoryFault::kUnknownKey);
  ASSERT_EQ(table_.bind(one), MemoryFault::kNone);
  ASSERT_EQ(table_.bind(two), MemoryFault::kNone);
  EXPECT_EQ(table_.invalidate(domain_, one.key, kBinder), MemoryFault::kWindowState);
  EXPECT_EQ(table_.invalidate(domain_, two.key, kOther), MemoryFault::kOtherQueuePair);
  EXPECT_EQ(table_.invalidate(other_domain_, two.key, kBinder), MemoryFault::kOtherDomain);
  EXPECT_EQ(table_.invalidate(domain_, variant(two.key, 1), kBinder), MemoryFault::kUnknownKey);
  EXPECT_EQ(table_.invalidate(domain_, region_.key, kBinder), MemoryFault::kUnknownKey) << "a region";
  EXPECT_EQ(table_.invalidate(domain_, MemoryKey(0xffffffff), kBinder), MemoryFault::kUnknownKey);
  EXPECT_EQ(reach(two.key, 0x500010, 1), MemoryFault::kNone);
}

TEST_F(MemoryWindowTest, ZeroBasedCountsFromItsFirstByte) {
  const BindRequest two = request(second_, 0x500010, 0x20, kRemoteRead | kZeroBased);
  ASSERT_EQ(table_.bind(two), MemoryFault::kNone);
  EXPECT_EQ(reach(two.key, 0, 0x20), MemoryFault::kNone);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(bytes_.data()), 0x1010U);
  EXPECT_EQ(reach(two.key, 0x500010, 1), MemoryFault::kOutOfBounds);
  EXPECT_EQ(table_.bind(request(first_, 0x500010, 0x20, kRemoteRead | kZeroBased)), MemoryFault::kNoAccess);
}

TEST_F(MemoryWindowTest, ARequestThatBreaksARuleChangesNothing) {
  struct Row {
    const char* what;
    MemoryFault fault;
    void (*spoil)(MemoryWindowTest&, BindRequest&);
  };
  const Row rows[] = {
      {"queue pair of another domain", MemoryFault::kOtherDomain,
       [](MemoryWindowTest& t, BindRequest& r) { r.domain = &t.other_domain_; }},
      {"no such window", MemoryFault::kUnknownKey, [](MemoryWindowTest&, BindRequest& r) { r.window = MemoryKey(0); }},
      {"a region as window", MemoryFault::kUnknownKey,
       [](MemoryWindowTest& t, BindRequest& r) { r.window = t.region_.key; }},
      {"key of another index", MemoryFault::kWindowState,
       [](MemoryWindowTest&, BindRequest& r) { r.key = MemoryKey(r.key.value() ^ 0x100); }},
      {"wrong type", MemoryFault::kWindowState,
       [](MemoryWindowTest&, BindRequest& r) {
         r.type = r.type == WindowType::kType1 ? WindowType::kType2 : WindowType::kType1;
       }},
      {"no such region", MemoryFault::kUnknownKey, [](MemoryWindowTest&, BindRequest& r) { r.region = MemoryKey(1); }},
      {"region without the right", MemoryFault::kNoAccess,
       [](MemoryWindowTest& t, BindRequest& r) { r.region = t.closed_.key; }},
      {"writable over read-only", MemoryFault::kNoAccess,
       [](MemoryWindowTest& t, BindRequest& r) { r.region = t.readable_.key; }},
      {"no right of a window", MemoryFault::kNoAccess,
       [](MemoryWindowTest&, BindRequest& r) { r.access |= kMemoryWindowBind; }},
      {"before the region", MemoryFault::kOutOfBounds, [](MemoryWindowTest&, BindRequest& r) { r.address = 0x4fffff; }},
      {"beyond the region", MemoryFault::kOutOfBounds, [](MemoryWindowTest&, BindRequest& r) { r.length = 0xf1; }},
      {"huge", MemoryFault::kOutOfBounds, [](MemoryWindowTest&, BindRequest& r) { r.length = UINT64_MAX; }},
  };
  for (MemoryWindow* window : {&first_, &second_}) {
    for (const Row& row : rows) {
      BindRequest bad = request(*window);
      const MemoryKey before = window->key();
      row.spoil(*this, bad);
      EXPECT_EQ(table_.bind(bad), row.fault) << row.what;
      EXPECT_EQ(window->key(), before) << row.what;
      EXPECT_FALSE(window->bound()) << row.what;
    }
  }
  EXPECT_EQ(region_.bound_windows, 0U);
}

TEST_F(MemoryWindowTest, ReadOnlyOverAReadOnlyRegionIsAllowed) {
  BindRequest bind = request(second_, 0x500000, 0x100, kRemoteRead);
  bind.region = readable_.key;
  EXPECT_EQ(table_.bind(bind), MemoryFault::kNone);
}

TEST_F(MemoryWindowTest, ALocalRightIsTakenAndMeansNothing) {
  const BindRequest bind = request(second_, 0x500010, 0x20, kRemoteRead | kLocalWrite);
  ASSERT_EQ(table_.bind(bind), MemoryFault::kNone);
  EXPECT_EQ(reach(bind.key, 0x500010, 8), MemoryFault::kNone);
  EXPECT_EQ(reach(bind.key, 0x500010, 8, kBinder, kLocalWrite), MemoryFault::kNoAccess);
}

TEST_F(MemoryWindowTest, IsGoneWhenRemoved) {
  const BindRequest bind = request(second_);
  ASSERT_EQ(table_.bind(bind), MemoryFault::kNone);
  table_.remove(second_);
  EXPECT_EQ(region_.bound_windows, 0U);
  EXPECT_EQ(reach(bind.key, 0x500010, 1), MemoryFault::kUnknownKey);
  EXPECT_EQ(table_.bind(bind), MemoryFault::kUnknownKey);
  EXPECT_EQ(table_.size(), 4U);
}

// For the thread sanitizer, and for torn bindings: what a reader is given always belongs to the key it asked with.
TEST(MemoryWindowThreads, AReaderSeesOneBindingOrNone) {
  ProtectionDomain domain(1);
  MemoryTable table(8, {1, 2});
  MemoryRegion region{&domain, 0x10000, 0x10000, 0x10000, kMemoryWindowBind | kLocalWrite, {}};
  MemoryWindow window(domain, WindowType::kType1);
  ASSERT_TRUE(table.insert(region));
  ASSERT_TRUE(table.insert(window));
  const std::uint32_t index = window.key().value() & ~0xffU;
  std::atomic<bool> done{false};
  std::thread reader([&] {
    std::span<std::byte> bytes;
    for (std::uint32_t i = 0; !done.load(std::memory_order_relaxed); i = (i + 1) % 256) {
      const std::uint64_t address = 0x10000 + 0x100 * i;
      if (table.resolve_remote(domain, MemoryKey(index | i), address, 0x100, kRemoteRead, bytes) ==
          MemoryFault::kNone) {
        ASSERT_EQ(reinterpret_cast<std::uint64_t>(bytes.data()), address);
      }
    }
  });
  for (std::uint32_t i = 0; i < 200'000; ++i) {
    const std::uint32_t variant = i % 256;
    const BindRequest bind{.domain = &domain,
                           .by = kBinder,
                           .type = WindowType::kType1,
                           .window = window.key(),
                           .key = MemoryKey(index | variant),
                           .region = region.key,
                           .address = 0x10000 + 0x100 * variant,
                           .length = 0x100,
                           .access = kRemoteRead};
    ASSERT_EQ(table.bind(bind), MemoryFault::kNone);
  }
  done.store(true, std::memory_order_relaxed);
  reader.join();
}

}  // namespace
}  // namespace verbena::engine
