#include "device/mapped_memory.h"

#include <cerrno>
#include <sstream>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace verbena::device {
namespace {

constexpr const char* kMaps =
    "00010000-00012000 rw-p 00000000 00:00 0\n"
    "00012000-00014000 r--p 00000000 00:00 0    /some/file\n"
    "00015000-00016000 ---p 00000000 00:00 0\n"
    "00016000-00018000 rw-s 00000000 00:00 0\n"
    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0    [vsyscall]\n";

struct Case {
  std::uint64_t address;
  std::uint64_t length;
  bool writable;
  int error;
};

TEST(MappedMemory, IsJudgedByEveryPageOfIt) {
  for (const Case& c :
       {Case{0x10000, 0x2000, true, 0}, Case{0x10fff, 1, true, 0}, Case{0x10000, 0x2001, true, EFAULT},
        Case{0x10000, 0x2001, false, 0}, Case{0x10000, 0x4000, false, 0}, Case{0x10000, 0x4001, false, EFAULT},
        Case{0x12000, 8, true, EFAULT}, Case{0x14000, 8, false, EFAULT}, Case{0x15000, 8, false, EFAULT},
        Case{0x16000, 0x2000, true, 0}, Case{0x1000, 8, false, EFAULT}, Case{0, 8, false, EFAULT},
        Case{0x10000, 1ULL << 60, false, EFAULT}, Case{0x10000, 0, false, EINVAL}, Case{0x10008, 0, true, 0}}) {
    std::istringstream maps(kMaps);
    EXPECT_EQ(check_mapped(maps, c.address, c.length, c.writable), c.error) << std::hex << c.address << "+" << c.length;
  }
}

TEST(MappedMemory, OfThisProcessIsFound) {
  constexpr std::size_t kPage = 4096;
  void* const memory = ::mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  EXPECT_EQ(check_mapped(address, 3 * kPage, true), 0);
  ASSERT_EQ(::mprotect(memory, kPage, PROT_READ), 0);
  EXPECT_EQ(check_mapped(address, 3 * kPage, true), EFAULT);
  EXPECT_EQ(check_mapped(address, 3 * kPage, false), 0);
  ASSERT_EQ(::munmap(memory, 3 * kPage), 0);
  EXPECT_EQ(check_mapped(address, kPage, false), EFAULT);
}

}  // namespace
}  // namespace verbena::device
