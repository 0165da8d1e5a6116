#include "device/xrc_domain.h"

#include <cerrno>
#include <map>
#include <mutex>
#include <tuple>

#include <fmt/format.h>
#include <sys/stat.h>

#include "device/completion_queue.h"
#include "device/queue_pair.h"
#include "device/shared_receive_queue.h"

namespace verbena::device {
namespace {

using FileKey = std::tuple<const Device*, dev_t, ino_t>;

struct Shared {
  std::mutex mutex;
  std::map<FileKey, std::weak_ptr<XrcDomain>> domains;  // guarded by mutex
};

Shared& shared() noexcept {
  static Shared& instance = *new Shared;
  return instance;
}

}  // namespace

Result<std::shared_ptr<XrcDomain>> XrcDomain::open(Context& context, const Wanted& wanted) {
  if (!wanted.file) return make(context);
  struct stat file {};
  if (::fstat(*wanted.file, &file) != 0) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("an XRC domain of file descriptor {}, which is not open", *wanted.file), EBADF);
  }
  const std::lock_guard guard(shared().mutex);
  auto& entry = shared().domains[{&context.device(), file.st_dev, file.st_ino}];
  if (auto there = entry.lock()) {
    if (!wanted.exclusive) return there;
    return failure(ErrorCode::kInvalidArgument, "the XRC domain of this file is there already, and O_EXCL was given",
                   EINVAL);
  }
  if (!wanted.create) {
    return failure(ErrorCode::kInvalidArgument,
                   "this process has no XRC domain of this file; O_CREAT makes one. Processes do not share them",
                   EAGAIN);
  }
  auto made = make(context);
  if (made) entry = *made;
  return made;
}

Result<std::shared_ptr<XrcDomain>> XrcDomain::make(Context& context) {
  if (auto entered = context.enter(ObjectKind::kXrcDomain); !entered) return tl::make_unexpected(entered.error());
  return std::shared_ptr<XrcDomain>(new XrcDomain(context));
}

XrcDomain::~XrcDomain() {
  context_->leave(ObjectKind::kXrcDomain);
}

// Their numbers are of this process, and so is the domain.
bool XrcDomain::find(std::uint32_t number, engine::XrcTarget& target) const noexcept {
  SharedReceiveQueue* const queue = context_->runtime().shared_receive_queues().find(Qpn(number));
  if (queue == nullptr || queue->xrc_domain() != this) return false;
  Context& owner = queue->context();
  if (owner.closed()) return false;
  target = {.reach = {.domain = &queue->domain(), .memory = &owner.memory(), .windows = &owner},
            .receives = queue,
            .completions = queue->xrc_completions(),
            .identity = queue->identity()};
  return true;
}

void XrcDomain::enlist(const std::shared_ptr<QueuePair>& queue_pair) {
  const std::lock_guard guard(mutex_);
  std::erase_if(queue_pairs_, [](const auto& entry) { return entry.second.expired(); });
  queue_pairs_[queue_pair->qpn().value()] = queue_pair;
}

std::shared_ptr<QueuePair> XrcDomain::queue_pair(Qpn qpn) const noexcept {
  const std::lock_guard guard(mutex_);
  const auto found = queue_pairs_.find(qpn.value());
  return found == queue_pairs_.end() ? nullptr : found->second.lock();
}

}  // namespace verbena::device
