#include "rdma/descriptor.h"

#include <unistd.h>

namespace verbena::rdma {

void Descriptor::close(int replacement) noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = replacement;
}

}  // namespace verbena::rdma
