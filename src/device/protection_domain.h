// A protection domain of a context.
//
// Thread-safety: all calls from any thread; destruction needs that nobody else uses it.
// Ownership:     keeps the context alive. What lives in it is counted by engine::ProtectionDomain.
#pragma once

#include <memory>

#include "device/context.h"
#include "engine/protection_domain.h"

namespace verbena::device {

class ProtectionDomain {
 public:
  // kExhausted: ENOMEM.
  static Result<std::unique_ptr<ProtectionDomain>> create(Context& context);
  ~ProtectionDomain() { context_->leave(ObjectKind::kProtectionDomain); }
  ProtectionDomain(const ProtectionDomain&) = delete;
  ProtectionDomain& operator=(const ProtectionDomain&) = delete;

  // EBUSY while anything lives in it: then it must not be destroyed.
  bool in_use() const noexcept { return domain_.in_use(); }

  Context& context() noexcept { return *context_; }
  engine::ProtectionDomain& engine() noexcept { return domain_; }
  std::uint32_t handle() const noexcept { return domain_.handle(); }

 private:
  explicit ProtectionDomain(Context& context) : context_(context.shared_from_this()), domain_(context.next_handle()) {}

  const std::shared_ptr<Context> context_;
  engine::ProtectionDomain domain_;
};

}  // namespace verbena::device
