// Memory of on-demand regions: it need not be mapped when it is registered, may be unmapped and mapped again while it
// is, and is brought in when a packet or a request touches it. What is not there then is a protection error, not a
// fault of the process.
//
// Between the look and the copy behind it another thread of the program could unmap the memory. That is the program's
// race with its own request, as on hardware; here it ends it.
#pragma once

#include <cstdint>
#include <span>

#include "device/context.h"
#include "device/protection_domain.h"
#include "engine/pager.h"
#include "engine/sge.h"

namespace verbena::device {

// The pager of this process.
//
// Thread-safety: any thread.
engine::Pager& demand_pager() noexcept;

enum class Prefetch : std::uint8_t { kRead, kWrite, kPresentOnly };

// Pages in what the pieces name, each of an on-demand region of `domain`. ENOENT for an unknown key, EPERM for one of
// another domain or (kWrite) of a region that is not writable, EINVAL for a region that is not on demand, EFAULT
// outside of its bounds or where nothing is mapped. With kPresentOnly nothing is paged in.
Status prefetch(ProtectionDomain& domain, Prefetch how, std::span<const engine::Sge> pieces);

}  // namespace verbena::device
