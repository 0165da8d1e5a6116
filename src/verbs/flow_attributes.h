// The flow that a program describes in ibv_flow_attr and the specifications behind it, as a rule of the engine.
#pragma once

#include <cstddef>
#include <span>

#include <infiniband/verbs.h>

#include "device/flow.h"
#include "verbena/result.h"

namespace verbena::verbs {

// `attributes`: an ibv_flow_attr and, right behind it, its specifications; read wherever it lies, aligned or not.
// kInvalidArgument (EINVAL) for what is malformed or contradicts itself, kUnsupported (EOPNOTSUPP) for what is not
// offered; the sentence names it. The port is not checked.
Result<engine::FlowRule> parse_flow(std::span<const std::byte> attributes);

// How many bytes parse_flow() may look at: `size`, where it says that there are specifications. Else, since the real
// library does not look at it and programs leave it at 0 or at that of ibv_flow_attr alone, what the specifications
// themselves say, up to the first that is malformed. Requires: as many specifications stand behind as are named.
std::size_t size_of_flow(const ibv_flow_attr& attributes) noexcept;

}  // namespace verbena::verbs
