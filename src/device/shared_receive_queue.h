// A shared receive queue of a context: the engine's, with a lock and its limit event. One of the XRC kind has besides a
// number, by which packets name it, a domain, and the completion queue for what is received in it.
//
// Thread-safety: all calls from any thread; destruction needs that nobody else uses it.
// Ownership:     keeps the context alive.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/qpn.h"
#include "device/protection_domain.h"
#include "device/xrc_domain.h"
#include "engine/shared_receive_queue.h"
#include "transport/spin_lock.h"

namespace verbena::device {

using engine::Sge;

class CompletionQueue;

// What one of the XRC kind has besides.
struct XrcPart {
  std::shared_ptr<XrcDomain> domain;       // nullptr: not of the XRC kind
  CompletionQueue* completions = nullptr;  // outlives the queue
};

class SharedReceiveQueue final : public engine::ReceiveSource {
 public:
  struct Attributes {
    std::uint32_t max_wr = 0;
    std::uint32_t max_sge = 0;
    std::uint32_t limit = 0;
  };

  // What is granted may be more than asked: attributes() tells. EINVAL above max_srq_wr or max_srq_sge, or for 0
  // requests; ENOMEM at the limit or where no number is free.
  static Result<std::unique_ptr<SharedReceiveQueue>> create(ProtectionDomain& domain, const Attributes& wanted,
                                                            std::uint64_t element, const XrcPart& xrc = {});
  ~SharedReceiveQueue();
  SharedReceiveQueue(const SharedReceiveQueue&) = delete;
  SharedReceiveQueue& operator=(const SharedReceiveQueue&) = delete;

  Context& context() noexcept { return *context_; }
  std::uint32_t handle() const noexcept { return handle_; }
  bool is_xrc() const noexcept { return xrc_.domain != nullptr; }
  // Of the XRC kind: who may deliver into it, where completions go, what packets call it.
  const XrcDomain* xrc_domain() const noexcept { return xrc_.domain.get(); }
  CompletionQueue* xrc_completions() const noexcept { return xrc_.completions; }
  Qpn number() const noexcept { return number_; }
  // Of no other queue, ever: numbers and addresses come back.
  std::uint64_t identity() const noexcept { return identity_; }
  engine::ProtectionDomain& domain() const noexcept { return domain_.engine(); }
  Attributes attributes() const noexcept;
  // Each where given. EINVAL as engine::SharedReceiveQueue.
  Status modify(std::optional<std::uint32_t> max_wr, std::optional<std::uint32_t> limit);
  // 0; EINVAL for too many SGEs; ENOMEM where full; ENODEV in a child of fork.
  int post(std::uint64_t wr_id, std::span<const Sge> sges) noexcept;

  bool in_use() const noexcept { return users_.load(std::memory_order_acquire) != 0; }
  void purge_events() noexcept { context_->async_events().purge(element_); }

  engine::Take take(std::uint64_t length, engine::TakenReceive& taken) noexcept override;

  void attach() noexcept { users_.fetch_add(1, std::memory_order_relaxed); }
  void detach() noexcept { users_.fetch_sub(1, std::memory_order_release); }

 private:
  SharedReceiveQueue(ProtectionDomain& domain, const Attributes& wanted, std::uint64_t element, const XrcPart& xrc);
  Status publish();

  const std::shared_ptr<Context> context_;
  ProtectionDomain& domain_;
  const std::uint64_t element_;
  const std::uint32_t handle_;
  const XrcPart xrc_;
  const std::uint64_t identity_;
  Qpn number_;              // of the XRC kind
  bool published_ = false;  // in the table of numbers
  mutable transport::SpinLock lock_;
  engine::SharedReceiveQueue queue_;  // guarded by lock_
  std::atomic<std::uint32_t> users_{0};
};

}  // namespace verbena::device
