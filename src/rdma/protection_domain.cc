#include "verbena/protection_domain.h"

#include <cerrno>

#include "rdma/verbs_error.h"

namespace verbena {

Result<ProtectionDomain> ProtectionDomain::create(const Context& context, CallSite place) {
  if (!context) return failure(ErrorCode::kInvalidArgument, "a protection domain needs an open device");
  ibv_pd* domain = ibv_alloc_pd(context.get());
  if (domain == nullptr) return rdma::verbs_failure("ibv_alloc_pd", "on " + context.name(), errno);
  detail::note_new_domain(domain);
  auto object = std::make_shared<VerbsObject<ibv_pd>>(domain, ibv_dealloc_pd, "ibv_dealloc_pd",
                                                      "protection domain on " + context.name(),
                                                      std::vector<Keeper>{context.keeper()});
  object->note_alive(place, nullptr);
  return ProtectionDomain(std::move(object));
}

}  // namespace verbena
