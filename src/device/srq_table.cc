#include "device/srq_table.h"

#include <cerrno>
#include <new>

namespace verbena::device {

Result<Qpn> SrqTable::reserve() {
  try {
    const std::lock_guard guard(first_);
    if (!has_slots()) add_slot(slot_);
  } catch (const std::bad_alloc&) {
    return failure(ErrorCode::kExhausted, "no memory for the table of XRC shared receive queues", ENOMEM);
  }
  Qpn srqn;
  if (NumberTable::reserve(srqn)) return srqn;
  return failure(ErrorCode::kExhausted, "all numbers for XRC shared receive queues of this process are in use", ENOMEM);
}

}  // namespace verbena::device
