#include "device/protection_domain.h"

namespace verbena::device {

Result<std::unique_ptr<ProtectionDomain>> ProtectionDomain::create(Context& context) {
  if (auto entered = context.enter(ObjectKind::kProtectionDomain); !entered)
    return tl::make_unexpected(entered.error());
  return std::unique_ptr<ProtectionDomain>(new ProtectionDomain(context));
}

}  // namespace verbena::device
