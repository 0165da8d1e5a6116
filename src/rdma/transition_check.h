// The state transitions of a queue pair, and which attributes each needs and takes: for ibv_modify_qp that was refused.
// Pure; the table is that of the InfiniBand specification as libibverbs programs know it.
#pragma once

#include <vector>

#include "rdma/attribute_check.h"

namespace verbena::rdma {

// Looks at "type", "from", "to" and "mask" (names joined by '|' or ',', with or without "IBV_QP_"). Empty where "to" or
// "mask" is not there.
std::vector<AttributeFinding> check_transition(const Attributes& attributes);

}  // namespace verbena::rdma
