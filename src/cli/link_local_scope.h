// A link-local address means another host on each link, so one that is to be reached needs its interface: fe80::1%eth0.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "verbena/result.h"

namespace verbena::cli {

// kInvalidArgument for a link-local address without an interface, and for one whose interface is none of `interfaces`;
// the text says how to write it. Anything else passes, a name too.
Status check_scope(std::string_view host, const std::vector<std::string>& interfaces);

// The interfaces of this network namespace that are up, but lo.
std::vector<std::string> link_names();

}  // namespace verbena::cli
