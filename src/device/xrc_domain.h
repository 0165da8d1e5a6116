// An XRC domain: which XRC receive queue pairs may deliver into which shared receive queues.
//
// Opened with a file, it is one domain for all who open the same file (the same inode of the same file system) on the
// same device in this process; without, a domain of its own. Other processes do not share it: each has the device in
// itself.
//
// Thread-safety: any thread; find() inside an RCU read section.
// Ownership:     shared by whoever opened it and by what lives in it; the file is not kept open.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/qpn.h"
#include "device/context.h"
#include "engine/xrc_directory.h"
#include "verbena/result.h"

namespace verbena::device {

class QueuePair;

class XrcDomain final : public engine::XrcDirectory {
 public:
  struct Wanted {
    std::optional<int> file;  // descriptor; nothing: a domain of its own
    bool create = false;      // make it where it is not there (O_CREAT)
    bool exclusive = false;   // it must not be there (O_EXCL)
  };

  // EBADF for a descriptor that is none, EAGAIN where it is not there and not to be made, EINVAL where it is there and
  // must not be, ENOMEM at the limit.
  static Result<std::shared_ptr<XrcDomain>> open(Context& context, const Wanted& wanted);
  virtual ~XrcDomain();
  XrcDomain(const XrcDomain&) = delete;
  XrcDomain& operator=(const XrcDomain&) = delete;

  // The one that it was opened in first.
  Context& context() noexcept { return *context_; }

  // The shared receive queue of that number, if it is of this domain.
  bool find(std::uint32_t number, engine::XrcTarget& target) const noexcept override;

  // A receive queue pair of it can be found by its number as long as somebody has it. Throws std::bad_alloc.
  void enlist(const std::shared_ptr<QueuePair>& queue_pair);
  std::shared_ptr<QueuePair> queue_pair(Qpn qpn) const noexcept;  // nullptr where there is none

 private:
  explicit XrcDomain(Context& context) : context_(context.shared_from_this()) {}
  static Result<std::shared_ptr<XrcDomain>> make(Context& context);

  const std::shared_ptr<Context> context_;  // whose gauge and limit count it
  mutable std::mutex mutex_;
  std::map<std::uint32_t, std::weak_ptr<QueuePair>> queue_pairs_;  // by QPN; guarded by mutex_
};

}  // namespace verbena::device
