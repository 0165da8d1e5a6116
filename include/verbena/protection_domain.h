// A protection domain: what memory, queue pairs and addresses may be used together.
#pragma once

#include <infiniband/verbs.h>

#include "verbena/call_site.h"
#include "verbena/device.h"

namespace verbena {

// Thread-safety: const functions, any thread.
// Ownership:     owns the ibv_pd; kept by every object made from it. Note that ibv_dealloc_pd does not free the address
//                handles of a domain: it fails with EBUSY while there are any.
// Errors:        close() says kBusy, and keeps the domain, where something still uses it.
class VERBENA_API ProtectionDomain : public VerbsOwner<ibv_pd> {
 public:
  ProtectionDomain() = default;
  static Result<ProtectionDomain> create(const Context& context, CallSite place = CallSite::current());

 private:
  using VerbsOwner::VerbsOwner;
};

}  // namespace verbena
