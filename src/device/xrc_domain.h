// An XRC domain: which XRC receive queue pairs may deliver into which shared receive queues.
//
// Opened with a file, it is one domain for all who open the same file (the same inode of the same file system) on the
// same device in this process; without, a domain of its own. Other processes do not share it: each has the device in
// itself.
//
// Thread-safety: any thread.
// Ownership:     shared by whoever opened it and by what lives in it; the file is not kept open.
#pragma once

#include <memory>
#include <optional>

#include "device/context.h"
#include "verbena/result.h"

namespace verbena::device {

class XrcDomain {
 public:
  struct Wanted {
    std::optional<int> file;  // descriptor; nothing: a domain of its own
    bool create = false;      // make it where it is not there (O_CREAT)
    bool exclusive = false;   // it must not be there (O_EXCL)
  };

  // EBADF for a descriptor that is none, EAGAIN where it is not there and not to be made, EINVAL where it is there and
  // must not be, ENOMEM at the limit.
  static Result<std::shared_ptr<XrcDomain>> open(Context& context, const Wanted& wanted);
  ~XrcDomain();
  XrcDomain(const XrcDomain&) = delete;
  XrcDomain& operator=(const XrcDomain&) = delete;

 private:
  explicit XrcDomain(Context& context) : context_(context.shared_from_this()) {}
  static Result<std::shared_ptr<XrcDomain>> make(Context& context);

  const std::shared_ptr<Context> context_;  // whose gauge and limit count it
};

}  // namespace verbena::device
