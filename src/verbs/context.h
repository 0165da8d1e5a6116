// Opened devices, and what is known of their ports without asking the kernel again.
//
// Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "device/device.h"
#include "device/port.h"
#include "verbs/objects.h"

namespace verbena::verbs {

// A port of `device` as a context of this process has it; nothing where none is open.
std::optional<device::PortSnapshot> open_port(const device::Device& device, std::uint8_t number);

// Puts our calls into a new context; see operations.cc.
void set_operations(verbs_context& extended) noexcept;

// Whether a descriptor is the cmd_fd of a context of ours, also when it was duplicated or passed on.
bool is_command_fd(int fd) noexcept;

}  // namespace verbena::verbs
