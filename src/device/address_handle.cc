#include "device/address_handle.h"

#include "device/rcu.h"

namespace verbena::device {

Result<std::unique_ptr<AddressHandle>> AddressHandle::create(ProtectionDomain& domain,
                                                             const engine::AddressVector& vector) {
  Context& context = domain.context();
  engine::AddressVector wanted = vector;
  if (context.quirks().has(Quirk::kHopLimitOverride)) wanted.hop_limit = kOverriddenHopLimit;
  Result<engine::AddressHandle> handle = [&] {
    const RcuReadSection section;
    const Port* const named = context.find_port(vector.port);
    const Port& port = named != nullptr ? *named : *context.ports().front();  // which refuses it in words
    return engine::validate(wanted, port.snapshot().view(), &domain.engine());
  }();
  if (!handle) return tl::make_unexpected(handle.error());
  if (auto entered = context.enter(ObjectKind::kAddressHandle); !entered) return tl::make_unexpected(entered.error());
  return std::unique_ptr<AddressHandle>(new AddressHandle(domain, *handle));
}

AddressHandle::AddressHandle(ProtectionDomain& domain, const engine::AddressHandle& handle)
    : context_(domain.context().shared_from_this()),
      domain_(domain),
      handle_(handle),
      number_(context_->next_handle()) {
  domain.engine().enter(engine::Resident::kAddressHandle);
}

AddressHandle::~AddressHandle() {
  context_->check_unused(handle_);
  domain_.engine().leave(engine::Resident::kAddressHandle);
  context_->leave(ObjectKind::kAddressHandle);
}

}  // namespace verbena::device
