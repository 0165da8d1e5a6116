#include "device/protection_domain.h"

namespace verbena::device {

Result<std::unique_ptr<ProtectionDomain>> ProtectionDomain::create(Context& context) {
  if (auto counted = context.count(context.counts().protection_domains, context.limits().max_pd, "protection domains");
      !counted) {
    return tl::make_unexpected(counted.error());
  }
  return std::unique_ptr<ProtectionDomain>(new ProtectionDomain(context));
}

}  // namespace verbena::device
