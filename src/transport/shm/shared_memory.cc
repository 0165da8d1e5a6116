#include "transport/shm/shared_memory.h"

#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/no_file_size_signal.h"
#include "transport/system_error.h"

namespace verbena::transport {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Result<Mapping> map(int fd, std::size_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (at == MAP_FAILED) return system_failure("Cannot map " + std::to_string(bytes) + " bytes of shared memory");
  Mapping mapping({static_cast<std::byte*>(at), bytes});
  if (::madvise(at, bytes, MADV_DONTFORK) != 0)
    return system_failure("Cannot keep shared memory out of child processes");
  return mapping;
}

}  // namespace

Mapping::Mapping(Mapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

Result<SharedMemory> create_shared_memory(const char* name, std::size_t bytes, OthersMay others) {
  Fd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return system_failure("Cannot make shared memory");
  const NoFileSizeSignal guard;
  // Allocated now, because a page that cannot be had later is a SIGBUS.
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fallocate(fd.get(), 0, 0, static_cast<off_t>(bytes)) != 0) {
    return system_failure("Cannot have " + std::to_string(bytes) + " bytes of shared memory");
  }
  auto mapping = map(fd.get(), bytes);
  if (!mapping) return tl::make_unexpected(mapping.error());
  const int seals = kSizeSeals | (others == OthersMay::kOnlyRead ? F_SEAL_FUTURE_WRITE : 0);
  if (::fcntl(fd.get(), F_ADD_SEALS, seals) != 0) return system_failure("Cannot seal shared memory");
  return SharedMemory{std::move(fd), std::move(*mapping)};
}

Result<Mapping> map_shared_memory(int fd, std::size_t bytes) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & kSizeSeals) != kSizeSeals) {
    return failure(ErrorCode::kInvalidArgument, "The memory of another process is not sealed against shrinking.");
  }
  struct stat status {};
  if (::fstat(fd, &status) != 0) return system_failure("Cannot look at the memory of another process");
  if (std::cmp_not_equal(status.st_size, bytes)) {
    return failure(ErrorCode::kInvalidArgument, "The memory of another process is " + std::to_string(status.st_size) +
                                                    " bytes long where " + std::to_string(bytes) + " were announced.");
  }
  return map(fd, bytes);
}

}  // namespace verbena::transport
