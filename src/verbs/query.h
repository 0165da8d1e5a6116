// Answers about a device of ours that other parts of this room give too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "verbena/gid.h"
#include "verbs/verbs_api.h"

namespace verbena::verbs {

// PortInfo.CapabilityMask of a port of InfiniBand here: CM, system image GUID, and a subnet manager's traps and LID
// change notices.
inline constexpr std::uint32_t kInfinibandCapabilities =
    IBV_PORT_CM_SUP | IBV_PORT_SYS_IMAGE_GUID_SUP | IBV_PORT_TRAP_SUP | IBV_PORT_SL_MAP_SUP;

// Writes as much of the attributes as `size` has room for. 0 or an errno.
int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes, std::size_t size) noexcept;
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attributes,
                    std::size_t size) noexcept;

// The index at which the GID stands now in the port's table. Nothing also where there is no such port.
std::optional<std::uint8_t> find_gid_index(ibv_context* context, std::uint8_t port, const Gid& gid) noexcept;

}  // namespace verbena::verbs
