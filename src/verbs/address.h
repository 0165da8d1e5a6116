// Addresses between verbs.h and the engine.
#pragma once

#include "device/address_handle.h"
#include "verbs/verbs_api.h"

namespace verbena::verbs {

engine::AddressVector to_engine(const ibv_ah_attr& attributes) noexcept;
ibv_ah_attr to_verbs(const engine::AddressVector& vector) noexcept;
Gid to_gid(const ibv_gid& gid) noexcept;
ibv_gid to_verbs(const Gid& gid) noexcept;

}  // namespace verbena::verbs
