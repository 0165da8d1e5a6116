// An address handle of a context: checked and worked out when it is made. Sends copy what they need from it.
//
// Thread-safety: all calls from any thread; destruction needs that nobody posts with it meanwhile.
// Ownership:     keeps the context alive.
#pragma once

#include <memory>

#include "device/protection_domain.h"
#include "engine/address_handle.h"

namespace verbena::device {

class AddressHandle {
 public:
  // Errors: as engine::validate(), with the reason in words; ENOMEM at max_ah.
  static Result<std::unique_ptr<AddressHandle>> create(ProtectionDomain& domain, const engine::AddressVector& vector);
  ~AddressHandle();
  AddressHandle(const AddressHandle&) = delete;
  AddressHandle& operator=(const AddressHandle&) = delete;

  Context& context() noexcept { return *context_; }
  const engine::AddressHandle& engine() const noexcept { return handle_; }
  std::uint32_t handle() const noexcept { return number_; }
  bool overrides_hop_limit() const noexcept { return context_->quirks().has(Quirk::kHopLimitOverride); }

 private:
  AddressHandle(ProtectionDomain& domain, const engine::AddressHandle& handle);

  const std::shared_ptr<Context> context_;
  ProtectionDomain& domain_;
  const engine::AddressHandle handle_;
  const std::uint32_t number_;
};

}  // namespace verbena::device
