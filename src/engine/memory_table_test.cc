#include "engine/memory_table.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <deque>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace verbena::engine {
namespace {

constexpr KeySeed kSeed{1, 2};

class MemoryTableTest : public ::testing::Test {
 protected:
  MemoryRegion& add(std::uint64_t address, std::uint64_t length, AccessFlags access, std::uint64_t iova) {
    MemoryRegion& region = regions_.emplace_back(MemoryRegion{&domain_, address, length, iova, access, {}});
    EXPECT_TRUE(table_.insert(region).has_value());
    return region;
  }
  MemoryRegion& add(std::uint64_t address, std::uint64_t length, AccessFlags access = 0) {
    return add(address, length, access, address);
  }
  MemoryFault resolve(Sge sge, AccessFlags access = kLocalRead) { return table_.resolve(domain_, sge, access, bytes_); }

  ProtectionDomain domain_{1};
  MemoryTable table_{64, kSeed};
  std::deque<MemoryRegion> regions_;
  std::span<std::byte> bytes_;
};

TEST_F(MemoryTableTest, FindsWhatWasInsertedAndNothingElse) {
  const MemoryRegion& region = add(0x1000, 0x100);
  EXPECT_EQ(table_.find(region.key), &region);
  EXPECT_EQ(table_.find(MemoryKey(region.key.value() ^ 1)), nullptr) << "another variant";
  EXPECT_EQ(table_.find(MemoryKey(region.key.value() ^ 0x100)), nullptr) << "another index";
  EXPECT_EQ(table_.find(MemoryKey(0xffffffff)), nullptr);
  EXPECT_EQ(table_.find(MemoryKey(0)), nullptr);
}

TEST_F(MemoryTableTest, ForgetsARemovedRegion) {
  MemoryRegion& region = add(0x1000, 0x100);
  EXPECT_EQ(table_.remove(MemoryKey(region.key.value() ^ 1)), nullptr);
  EXPECT_EQ(table_.remove(region.key), &region);
  EXPECT_EQ(table_.find(region.key), nullptr);
  EXPECT_EQ(table_.remove(region.key), nullptr);
  EXPECT_EQ(table_.size(), 0U);
}

TEST_F(MemoryTableTest, AReplacedRegionHasTheKeyOfTheOldOne) {
  const MemoryRegion& old = add(0x1000, 0x100);
  MemoryRegion other{&domain_, 0x5000, 0x10, 0x5000, kLocalWrite, {}};
  table_.replace(old, other);
  EXPECT_EQ(other.key, old.key);
  EXPECT_EQ(table_.size(), 1U);
  EXPECT_EQ(resolve({0x1000, 1, old.key.value()}), MemoryFault::kOutOfBounds);
  EXPECT_EQ(resolve({0x5000, 16, old.key.value()}, kLocalWrite), MemoryFault::kNone);
}

TEST_F(MemoryTableTest, StopsAtItsMaximum) {
  std::set<std::uint32_t> keys;
  for (int i = 0; i < 64; ++i) keys.insert(add(0x1000, 1).key.value());
  EXPECT_EQ(keys.size(), 64U);
  MemoryRegion region{&domain_, 0, 1, 0, 0, {}};
  const auto refused = table_.insert(region);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().system_errno, ENOMEM);
  ASSERT_NE(table_.remove(MemoryKey(*keys.begin())), nullptr);
  EXPECT_TRUE(table_.insert(region));
}

TEST_F(MemoryTableTest, KeysFollowTheSeedAndAreSpread) {
  MemoryTable same(1024, kSeed);
  MemoryTable again(1024, kSeed);
  MemoryTable other(1024, {1, 3});
  MemoryRegion region{&domain_, 0, 1, 0, 0, {}};
  std::set<std::uint32_t> indices;
  int equal_to_other = 0;
  for (int i = 0; i < 200; ++i) {
    const MemoryKey key = *same.insert(region);
    EXPECT_EQ(key, *again.insert(region));
    equal_to_other += key == *other.insert(region) ? 1 : 0;
    indices.insert(key.value() >> 8);
  }
  EXPECT_EQ(indices.size(), 200U);
  EXPECT_GT(*indices.rbegin() - *indices.begin(), 1024U) << "not handed out one after the other";
  EXPECT_LT(equal_to_other, 3);
}

TEST_F(MemoryTableTest, ResolvesToTheBytesOfTheRegion) {
  const MemoryRegion& region = add(0x1000, 0x100, 0, 0x500000);
  EXPECT_EQ(resolve({0x500010, 0x20, region.key.value()}), MemoryFault::kNone);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(bytes_.data()), 0x1010U);
  EXPECT_EQ(bytes_.size(), 0x20U);
  EXPECT_EQ(resolve({0x500000, 0x100, region.key.value()}), MemoryFault::kNone);
  EXPECT_EQ(resolve({0x1010, 0x20, region.key.value()}), MemoryFault::kOutOfBounds) << "the iova counts";
}

TEST_F(MemoryTableTest, BoundsHoldAtEveryEdge) {
  const std::uint32_t key = add(0x1000, 0x100).key.value();
  EXPECT_EQ(resolve({0x10ff, 1, key}), MemoryFault::kNone);
  EXPECT_EQ(resolve({0x10ff, 2, key}), MemoryFault::kOutOfBounds);
  EXPECT_EQ(resolve({0x1100, 1, key}), MemoryFault::kOutOfBounds);
  EXPECT_EQ(resolve({0xfff, 1, key}), MemoryFault::kOutOfBounds);
  EXPECT_EQ(resolve({0xfff, 2, key}), MemoryFault::kOutOfBounds);
  EXPECT_EQ(resolve({0, UINT32_MAX, key}), MemoryFault::kOutOfBounds);
  EXPECT_EQ(resolve({UINT64_MAX, 2, key}), MemoryFault::kOutOfBounds);
  EXPECT_EQ(resolve({UINT64_MAX - 0xfff, UINT32_MAX, key}), MemoryFault::kOutOfBounds);
}

TEST_F(MemoryTableTest, ARegionOfTheWholeAddressSpaceHasNoEdges) {
  const std::uint32_t key = add(0, UINT64_MAX).key.value();
  EXPECT_EQ(resolve({0, UINT32_MAX, key}), MemoryFault::kNone);
  EXPECT_EQ(resolve({UINT64_MAX - 1, 1, key}), MemoryFault::kNone);
  EXPECT_EQ(resolve({UINT64_MAX - 1, 2, key}), MemoryFault::kOutOfBounds);
}

TEST_F(MemoryTableTest, DomainAndAccessAreChecked) {
  const std::uint32_t readable = add(0x1000, 0x100, kRemoteRead).key.value();
  const std::uint32_t writable = add(0x1000, 0x100, kLocalWrite).key.value();
  EXPECT_EQ(resolve({0x1000, 1, readable}, kLocalWrite), MemoryFault::kNoAccess);
  EXPECT_EQ(resolve({0x1000, 1, readable}, kLocalRead), MemoryFault::kNone);
  EXPECT_EQ(resolve({0x1000, 1, writable}, kLocalWrite), MemoryFault::kNone);
  const ProtectionDomain other(2);
  EXPECT_EQ(table_.resolve(other, {0x1000, 1, writable}, kLocalRead, bytes_), MemoryFault::kOtherDomain);
  EXPECT_EQ(resolve({0x1000, 1, writable ^ 0x80}), MemoryFault::kUnknownKey);
}

TEST_F(MemoryTableTest, AZeroLengthPieceNeedsNoKey) {
  EXPECT_EQ(resolve({0xdead, 0, 0xbad}, kLocalWrite), MemoryFault::kNone);
  EXPECT_TRUE(bytes_.empty());
}

struct Paging final : Pager {
  struct Call {
    std::uint64_t address;
    std::uint64_t length;
    bool write;
    friend bool operator==(const Call&, const Call&) = default;
  };
  bool page_in(std::uint64_t address, std::uint64_t length, bool write) noexcept override {
    calls.push_back({address, length, write});
    return there;
  }
  bool there = true;
  std::vector<Call> calls;
};

TEST(OnDemand, IsPagedInBeforeEachUse) {
  const ProtectionDomain domain(1);
  Paging pager;
  MemoryTable table(8, kSeed, &pager);
  MemoryRegion region{&domain, 0, UINT64_MAX, 0, kOnDemand | kLocalWrite | kRemoteRead | kRemoteWrite, {}};
  ASSERT_TRUE(table.insert(region));
  std::span<std::byte> bytes;
  EXPECT_EQ(table.resolve(domain, {0x1010, 8, region.key.value()}, kLocalRead, bytes), MemoryFault::kNone);
  EXPECT_EQ(table.resolve(domain, {0x1010, 8, region.key.value()}, kLocalWrite, bytes), MemoryFault::kNone);
  EXPECT_EQ(table.resolve_remote(domain, region.key, 0x2000, 16, kRemoteRead, bytes), MemoryFault::kNone);
  EXPECT_EQ(table.resolve_remote(domain, region.key, 0x2000, 16, kRemoteWrite, bytes), MemoryFault::kNone);
  EXPECT_EQ(pager.calls, (std::vector<Paging::Call>{
                             {0x1010, 8, false}, {0x1010, 8, true}, {0x2000, 16, false}, {0x2000, 16, true}}));
  EXPECT_EQ(table.resolve_remote(domain, region.key, 0x2000, 8, kRemoteAtomic, bytes), MemoryFault::kNoAccess);
  EXPECT_EQ(table.resolve(domain, {0x1010, 0, region.key.value()}, kLocalRead, bytes), MemoryFault::kNone);
  EXPECT_EQ(pager.calls.size(), 4U) << "what is refused, or nothing, is not paged in";
  pager.there = false;
  EXPECT_EQ(table.resolve(domain, {0x1010, 8, region.key.value()}, kLocalRead, bytes), MemoryFault::kNotMapped);
}

TEST(OnDemand, SoIsAWindowOfIt) {
  const ProtectionDomain domain(1);
  Paging pager;
  MemoryTable table(8, kSeed, &pager);
  MemoryRegion region{&domain, 0x1000, 0x100, 0x1000, kOnDemand | kMemoryWindowBind, {}};
  MemoryWindow window(domain, WindowType::kType1);
  ASSERT_TRUE(table.insert(region));
  ASSERT_TRUE(table.insert(window));
  ASSERT_EQ(table.bind({.domain = &domain,
                        .by = Qpn(17),
                        .type = WindowType::kType1,
                        .window = window.key(),
                        .key = window.key(),
                        .region = region.key,
                        .address = 0x1010,
                        .length = 8,
                        .access = kRemoteRead}),
            MemoryFault::kNone);
  std::span<std::byte> bytes;
  pager.there = false;
  EXPECT_EQ(table.resolve_remote(domain, window.key(), 0x1010, 8, kRemoteRead, bytes), MemoryFault::kNotMapped);
  EXPECT_EQ(pager.calls, (std::vector<Paging::Call>{{0x1010, 8, false}}));
}

TEST_F(MemoryTableTest, ANullRegionReadsOnePlaceAndWritesAnother) {
  MemoryRegion& region = regions_.emplace_back(MemoryRegion{&domain_, 0x1000, UINT64_MAX, 0, kNull | kLocalWrite, {}});
  region.sink = 0x9000;
  ASSERT_TRUE(table_.insert(region));
  EXPECT_EQ(resolve({0xdeadbeef, 16, region.key.value()}), MemoryFault::kNone);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(bytes_.data()), 0x1000U);
  EXPECT_EQ(bytes_.size(), 16U);
  EXPECT_EQ(resolve({0, UINT32_MAX, region.key.value()}, kLocalWrite), MemoryFault::kNone);
  EXPECT_EQ(reinterpret_cast<std::uint64_t>(bytes_.data()), 0x9000U);
  EXPECT_EQ(table_.resolve_remote(domain_, region.key, 0, 1, kRemoteRead, bytes_), MemoryFault::kNoAccess);
}

// For the thread sanitizer: look-ups while another thread inserts and removes.
TEST(MemoryTableThreads, LookUpsNeedNoLock) {
  const ProtectionDomain domain(1);
  MemoryTable table(1024, kSeed);
  constexpr std::size_t kRegions = 20'000;
  std::vector<MemoryRegion> regions(kRegions, {&domain, 0x1000, 0x100, 0x1000, 0, {}});  // none is used twice
  std::array<std::atomic<std::uint32_t>, 64> keys{};
  std::atomic<bool> done{false};
  std::thread reader([&] {
    std::span<std::byte> bytes;
    for (std::size_t i = 0; !done.load(std::memory_order_relaxed); i = (i + 1) % keys.size()) {
      const std::uint32_t key = keys[i].load(std::memory_order_acquire);
      const MemoryFault fault = table.resolve(domain, {0x1000, 16, key}, kLocalRead, bytes);
      ASSERT_TRUE(fault == MemoryFault::kNone || fault == MemoryFault::kUnknownKey);
    }
  });
  for (std::size_t i = 0; i < kRegions; ++i) {
    auto& key = keys[i % keys.size()];
    table.remove(MemoryKey(key.load(std::memory_order_relaxed)));
    key.store(table.insert(regions[i])->value(), std::memory_order_release);
  }
  done.store(true, std::memory_order_relaxed);
  reader.join();
}

TEST(MemoryRegion, WritableFromAfarMustBeWritableHere) {
  MemoryRegion region{nullptr, 0x1000, 0x1000, 0x1000, 0, {}};
  for (AccessFlags access = 0; access < 1024; ++access) {
    region.access = access;
    const bool bad = (access & (kRemoteWrite | kRemoteAtomic)) != 0 && (access & kLocalWrite) == 0;
    const Status status = check_region(region);
    EXPECT_EQ(status.has_value(), !bad) << access;
    EXPECT_EQ(status ? EINVAL : status.error().system_errno, EINVAL);
  }
}

TEST(MemoryRegion, OptionalFlagsAreIgnoredAndUnknownOnesRefused) {
  MemoryRegion region{nullptr, 0x1000, 0x1000, 0x1000, kOptionalAccess, {}};
  EXPECT_TRUE(check_region(region));
  region.access = 1U << 15;
  EXPECT_FALSE(check_region(region));
  region.access = 1U << 31;
  EXPECT_FALSE(check_region(region));
}

TEST(MemoryRegion, MayNotWrapAround) {
  EXPECT_FALSE(check_region({nullptr, UINT64_MAX, 2, 0, 0, {}}));
  EXPECT_FALSE(check_region({nullptr, 0, 2, UINT64_MAX, 0, {}}));
  EXPECT_TRUE(check_region({nullptr, 0, UINT64_MAX, 0, 0, {}}));
}

// The published vector of SipHash-2-4 for the eight bytes 00 to 07.
TEST(KeyStream, IsSipHash) {
  KeyStream stream({0x0706050403020100, 0x0f0e0d0c0b0a0908}, 0x0706050403020100);
  EXPECT_EQ(stream.next(), 0x93f5f5799a932462U);
}

TEST(ProtectionDomain, IsInUseWhileAnythingLivesInIt) {
  ProtectionDomain domain(9);
  EXPECT_FALSE(domain.in_use());
  domain.enter(Resident::kAddressHandle);
  domain.enter(Resident::kAddressHandle);
  domain.leave(Resident::kAddressHandle);
  EXPECT_TRUE(domain.in_use());
  EXPECT_EQ(domain.residents(Resident::kAddressHandle), 1U);
  EXPECT_EQ(domain.residents(Resident::kQueuePair), 0U);
  domain.leave(Resident::kAddressHandle);
  EXPECT_FALSE(domain.in_use());
}

}  // namespace
}  // namespace verbena::engine
