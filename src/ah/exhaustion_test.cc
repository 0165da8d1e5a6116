// What the directory counts when an allocation fails in the midst of a request: as if it had not been made.
#include <cstdlib>
#include <new>
#include <utility>

#include <fake_verbs/ah_world.h>

#include "ah/slab_pool.h"
#include "verbena/tenant.h"

namespace {

constexpr int kUnlimited = -1;

// Of this thread, until one fails.
thread_local int allocations_left = kUnlimited;

bool may_allocate() {
  if (allocations_left == kUnlimited) return true;
  if (allocations_left == 0) return false;
  --allocations_left;
  return true;
}

void* allocate(std::size_t bytes) noexcept {
  return may_allocate() ? std::malloc(bytes != 0 ? bytes : 1) : nullptr;
}

void* allocate(std::size_t bytes, std::align_val_t alignment) noexcept {
  const auto line = static_cast<std::size_t>(alignment);
  return may_allocate() ? std::aligned_alloc(line, (bytes + line - 1) / line * line) : nullptr;
}

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// Every form: a sanitizer has its own for those that are left out, and tells where the two are mixed.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  return or_throw(allocate(bytes));
}
[[gnu::noinline]] void* operator new[](std::size_t bytes) {
  return or_throw(allocate(bytes));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes);
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes);
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return or_throw(allocate(bytes, alignment));
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return or_throw(allocate(bytes, alignment));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(bytes, alignment);
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(bytes, alignment);
}

[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(memory);
}

namespace verbena::fake {
namespace {

// Calls it with one more allocation each time until it succeeds; `failed` after each that did not.
template <class Call, class Failed>
int with_each_failing(Call call, Failed failed) {
  for (int allowed = 0;; ++allowed) {
    allocations_left = allowed;
    try {
      call();
      allocations_left = kUnlimited;
      return allowed;
    } catch (const std::bad_alloc&) {
      allocations_left = kUnlimited;
      failed();
    }
  }
}

using Exhaustion = AhWorld;

TEST_F(Exhaustion, ARequestThatFindsNoMemoryLeavesNothingBehind) {
  Tenant tenant = std::move(*Tenant::create(context, {.name = "starved"}));
  {
    AhDirectory directory = std::move(*tenant.directory(1, options()));
    std::uint32_t peer = 2;
    int failures = 0;
    // Beyond what a slab and the first table have room for.
    for (int round = 0; round < 200; ++round, ++peer) {
      failures += with_each_failing([&] { static_cast<void>(directory.acquire_async(to(peer))); }, [] {});
      ASSERT_TRUE(directory.acquire(to(peer), soon())) << "after " << round;
    }
    EXPECT_GT(failures, 200);
    EXPECT_EQ(directory.stats().ready, 200U);
  }
  EXPECT_EQ(tenant.usage().memory, 0U);
}

TEST_F(Exhaustion, ASenderThatFindsNoMemoryIsNotCharged) {
  Tenant tenant = std::move(*Tenant::create(context, {.name = "starved"}));
  AhDirectory directory = std::move(*tenant.directory(1, options()));
  const std::size_t before = tenant.usage().memory;
  AhSender sender;
  const int failures = with_each_failing([&] { sender = std::move(*directory.make_sender()); },
                                         [&] { EXPECT_EQ(tenant.usage().memory, before); });
  EXPECT_GT(failures, 0);
  sender = AhSender();
  EXPECT_EQ(tenant.usage().memory, before);
}

TEST(SlabPool, ASlabThatFindsNoMemoryIsNotLookedFor) {
  struct alignas(64) Line {
    int value = 0;
  };
  ah::SlabPool<Line> pool;
  Line* first = nullptr;
  EXPECT_GT(with_each_failing([&] { first = pool.make(); }, [] {}), 0);
  ASSERT_NE(first, nullptr);
  pool.destroy(first);
}

}  // namespace
}  // namespace verbena::fake
