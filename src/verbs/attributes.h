// Queue pair attributes between verbs.h and the engine.
#pragma once

#include "device/queue_pair.h"
#include "verbs/verbs_api.h"

namespace verbena::verbs {

engine::QpCapabilities to_engine(const ibv_qp_cap& capabilities) noexcept;
ibv_qp_cap to_verbs(const engine::QpCapabilities& capabilities) noexcept;

// Takes over what `mask` names. False where a number stands for no state.
bool to_engine(const ibv_qp_attr& attributes, unsigned mask, engine::QpAttributes& converted) noexcept;
ibv_qp_attr to_verbs(const engine::QpAttributes& attributes) noexcept;

}  // namespace verbena::verbs
