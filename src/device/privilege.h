// What the process may do beyond the ordinary.
#pragma once

namespace verbena::device {

// CAP_NET_RAW in the effective set of the calling thread.
bool may_use_raw_network() noexcept;

// CAP_IPC_LOCK, likewise.
bool may_lock_memory() noexcept;

}  // namespace verbena::device
