// The checks of directory_checks, by what they are about.
#pragma once

#include <span>

#include "check.h"

namespace verbena::on_device {

// Many peers, few handles, many askers.
std::span<const Check> pressure_checks();
// Domains with a budget, and who holds on.
std::span<const Check> tenant_checks();
// What an address handle is given, and what leaves the host; the way back.
std::span<const Check> address_checks();

}  // namespace verbena::on_device
