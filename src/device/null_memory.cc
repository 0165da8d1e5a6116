#include "device/null_memory.h"

#include <cerrno>
#include <cstddef>
#include <mutex>

#include <sys/mman.h>
#include <unistd.h>

namespace verbena::device {
namespace {

constexpr std::size_t kLength = std::size_t{1} << 32;      // an SGE is shorter
constexpr std::size_t kSinkMemory = std::size_t{1} << 24;  // laid side by side until it is as long

void* reserve(int protection) noexcept {
  return ::mmap(nullptr, kLength, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

// The same memory over and over.
bool fill_sink(std::byte* begin) noexcept {
  const int fd = ::memfd_create("verbena-null", MFD_CLOEXEC);
  if (fd < 0) return false;
  bool mapped = ::ftruncate(fd, kSinkMemory) == 0;
  for (std::size_t at = 0; mapped && at < kLength; at += kSinkMemory) {
    mapped = ::mmap(begin + at, kSinkMemory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
  }
  ::close(fd);
  return mapped;
}

bool map(NullMemory& memory) noexcept {
  void* const zeros = reserve(PROT_READ);
  if (zeros == MAP_FAILED) return false;
  void* const sink = reserve(PROT_NONE);
  if (sink != MAP_FAILED && fill_sink(static_cast<std::byte*>(sink))) {
    memory = {reinterpret_cast<std::uint64_t>(zeros), reinterpret_cast<std::uint64_t>(sink)};
    return true;
  }
  if (sink != MAP_FAILED) ::munmap(sink, kLength);
  ::munmap(zeros, kLength);
  return false;
}

}  // namespace

Result<NullMemory> null_memory() {
  static std::mutex mutex;
  static NullMemory memory;
  const std::lock_guard guard(mutex);
  if (memory.zeros != 0 || map(memory)) return memory;
  return failure(ErrorCode::kExhausted, "no 8 GiB of address space (not of memory) for a null memory region", ENOMEM);
}

}  // namespace verbena::device
