// write() and fstat(), for descriptors that are channels of rdma_cm: a program, or librdmacm for it, opens
// /dev/infiniband/rdma_cm, makes sure that it is a character device, and writes commands to it. Any other descriptor
// goes on to libc at the cost of one load. Nothing on the way to libc is noexcept; see libc_open.cc.
#include <cstddef>

#include <sys/stat.h>
#include <unistd.h>

#include "ucm/descriptors.h"
#include "ucm/service.h"
#include "verbs/export.h"
#include "verbs/libc_next.h"
#include "verbs/sysfs_lookup.h"

namespace verbena::verbs {
namespace {

#ifdef __x86_64__
constexpr const char* kFirstGlibc = "GLIBC_2.2.5";
#else
constexpr const char* kFirstGlibc = "GLIBC_2.17";
#endif

static_assert(sizeof(struct stat) == sizeof(struct stat64));

constinit LibcNext<ssize_t(int, const void*, std::size_t)> next_write{"write"};
constinit LibcNext<int(int, struct stat*)> next_fstat{"fstat"};
constinit LibcNext<int(int, int, struct stat*)> next_fxstat{"__fxstat", kFirstGlibc};

[[gnu::constructor]] void find_calls() noexcept {
  find_all(next_write, next_fstat, next_fxstat);
}

// As the kernel's device looks.
int as_device(int result, int fd, struct stat* status) noexcept {
  if (result == 0 && ucm::may_be_channel(fd) && ucm::channel_inode(fd) != 0) {
    status->st_mode = S_IFCHR | 0666;
    status->st_rdev = connection_device_number();
    status->st_size = 0;
  }
  return result;
}

}  // namespace

VERBENA_EXPORT ssize_t write(int fd, const void* bytes, std::size_t size) {
  if (!ucm::may_be_channel(fd)) return next_write.get()(fd, bytes, size);
  const auto inode = ucm::channel_inode(fd);
  ucm::Service* const service = inode == 0 ? nullptr : ucm::Service::instance();
  if (service == nullptr) return next_write.get()(fd, bytes, size);
  return service->command(fd, inode, bytes, size);
}

VERBENA_EXPORT int fstat(int fd, struct stat* status) {
  return as_device(next_fstat.get()(fd, status), fd, status);
}
VERBENA_EXPORT int fstat64(int fd, struct stat64* status) {
  auto* const plain = reinterpret_cast<struct stat*>(status);
  return as_device(next_fstat.get()(fd, plain), fd, plain);
}
// What programs linked with a glibc before 2.33 call.
VERBENA_EXPORT int __fxstat(int version, int fd, struct stat* status) {
  return as_device(next_fxstat.get()(version, fd, status), fd, status);
}
VERBENA_EXPORT int __fxstat64(int version, int fd, struct stat64* status) {
  auto* const plain = reinterpret_cast<struct stat*>(status);
  return as_device(next_fxstat.get()(version, fd, plain), fd, plain);
}

}  // namespace verbena::verbs
