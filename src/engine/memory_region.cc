#include "engine/memory_region.h"

#include <cerrno>

namespace verbena::engine {

Status check_region(const MemoryRegion& region) {
  if ((region.access & ~kKnownAccess) != 0) {
    return failure(ErrorCode::kInvalidArgument, "access flags hold a bit that verbs does not define", EINVAL);
  }
  if ((region.access & (kRemoteWrite | kRemoteAtomic)) != 0 && (region.access & kLocalWrite) == 0) {
    return failure(ErrorCode::kInvalidArgument, "REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE as well", EINVAL);
  }
  if (region.length > UINT64_MAX - region.address || region.length > UINT64_MAX - region.iova) {
    return failure(ErrorCode::kInvalidArgument, "region reaches beyond the end of the address space", EINVAL);
  }
  return {};
}

}  // namespace verbena::engine
