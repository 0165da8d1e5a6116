// What the directory itself keeps for a destination, beside what the device keeps for the address handle.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <vector>

#include <fake_verbs/ah_world.h>
#include <malloc.h>

namespace verbena::fake {
namespace {

constexpr std::uint32_t kDestinations = 10'000;
constexpr std::size_t kMostBytes = 256;

std::size_t size_after(const char* text, const char* tag) {
  const char* const at = std::strstr(text, tag);
  const char* const size = at != nullptr ? std::strstr(at, "size=\"") : nullptr;
  return size != nullptr ? std::strtoull(size + std::strlen("size=\""), nullptr, 10) : 0;
}

// Of all arenas, the allocator's own headers and rounding included. 0 where the allocator does not tell.
std::size_t heap_in_use() {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* const stream = ::open_memstream(&text, &size);
  const int code = ::malloc_info(0, stream);
  std::fclose(stream);
  const char* totals = text;
  for (const char* next = text; next != nullptr; next = std::strstr(totals + 1, "</heap>")) totals = next;
  std::size_t in_use = 0;
  if (code == 0) {
    in_use = size_after(totals, "<system type=\"current\"") + size_after(totals, "<total type=\"mmap\"") -
             size_after(totals, "<total type=\"fast\"") - size_after(totals, "<total type=\"rest\"");
  }
  std::free(text);
  return in_use;
}

class Memory : public AhWorld {
 protected:
  ibv_ah* create(std::uint32_t peer) {
    ibv_ah_attr attributes{};
    attributes.port_num = 1;
    attributes.is_global = 1;
    attributes.grh.hop_limit = 64;
    attributes.grh.sgid_index = 2;
    std::memcpy(attributes.grh.dgid.raw, ipv4(2 + peer).bytes.data(), sizeof attributes.grh.dgid.raw);
    ibv_ah* const address = ibv_create_ah(domain.get(), &attributes);
    EXPECT_NE(address, nullptr);
    return address;
  }

  // The fake keeps a list of all that ever were, which doubles: so long that it does not while something is measured.
  void lengthen_list_of_device() {
    constexpr std::uint32_t kJustDoubled = (1U << 15) + 1;
    static_assert(kJustDoubled + 2 * kDestinations < 1U << 16);
    for (std::uint32_t i = 0; i < kJustDoubled; ++i) ibv_destroy_ah(create(i));
  }

  // What the fake device takes for as many, made without a directory.
  std::size_t taken_by_device() {
    const std::size_t before = heap_in_use();
    for (std::uint32_t i = 0; i < kDestinations; ++i) addresses_.push_back(create(i));
    return heap_in_use() - before;
  }

  std::vector<ibv_ah*> addresses_;
};

TEST_F(Memory, ADestinationWithAHandleTakesNoMoreThanStated) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the allocator of a sanitizer";
#endif
  ASSERT_NE(heap_in_use(), 0U);
  addresses_.reserve(kDestinations);
  lengthen_list_of_device();
  const std::size_t device = taken_by_device();
  std::vector<AhHandle> handles;
  handles.reserve(kDestinations);  // the application's own
  AhDirectoryOptions with = options();
  with.max_entries = kDestinations;
  const std::size_t before = heap_in_use();
  AhDirectory directory = make_directory(with);
  for (std::uint32_t i = 0; i < kDestinations; ++i) handles.push_back(*directory.acquire(to(2 + i), soon()));
  // All that the directory has: with its fixed part and its tables. What the table outgrew goes in the background.
  const auto bytes_each = [&] { return (heap_in_use() - before - device) / kDestinations; };
  EXPECT_TRUE(eventually([&] { return bytes_each() <= kMostBytes; }));
  std::cout << "bytes for a destination with its address handle: " << bytes_each() << " (and " << device / kDestinations
            << " of the fake device)\n";
  handles.clear();
  EXPECT_TRUE(directory.close(soon()).empty());
  for (ibv_ah* const address : addresses_) ibv_destroy_ah(address);
}

}  // namespace
}  // namespace verbena::fake
