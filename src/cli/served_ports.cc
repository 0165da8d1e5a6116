#include "cli/served_ports.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cli/error_output.h"
#include "verbena/device.h"
#include "verbena/gid_table.h"

namespace verbena::cli {
namespace {

bool is_at(const GidEntry& entry, const LocalAddress& address) noexcept {
  const bool same_link = address.netdev == 0 || entry.netdev == 0 || entry.netdev == address.netdev;
  return entry.gid == address.gid && entry.type != GidType::kRoceV1 && same_link;
}

// Nothing where no port that `wanted` names has it, or its device does not open.
std::optional<PortName> port_with(const LocalAddress& address, const PortName& wanted) {
  const auto list = DeviceList::read();
  for (const std::string& name : list ? list->names() : std::vector<std::string>()) {
    if (!wanted.names_device(name)) continue;
    const auto context = Context::open(name);
    const auto table = context ? read_gid_table(context->get()) : Result<std::vector<GidEntry>>();
    if (!table) continue;
    for (const GidEntry& entry : *table) {
      if (wanted.names_port(entry.port) && is_at(entry, address)) return PortName{name, entry.port};
    }
  }
  return std::nullopt;
}

}  // namespace

Result<ServedPorts> ServedPorts::open(const UdEndpointOptions& options) {
  auto first = UdEndpoint::open(options);
  if (!first) return tl::make_unexpected(first.error());
  ServedPorts ports(options);
  ports.endpoints_.push_back(std::move(*first));
  return ports;
}

UdEndpoint* ServedPorts::open_one(const PortName& port) {
  UdEndpointOptions options = options_;
  options.port = port;
  auto endpoint = UdEndpoint::open(options);
  if (!endpoint) {
    print_error("{} has the address that a client came in by and cannot be used ({}); {} answers instead\n",
                to_text(port), endpoint.error().message, first().device());
    return nullptr;
  }
  endpoints_.push_back(std::move(*endpoint));
  return endpoints_.back().get();
}

UdEndpoint& ServedPorts::at(const LocalAddress& address) {
  if (address.gid.is_zero()) return first();
  for (const auto& endpoint : endpoints_) {
    const auto entries = endpoint->gid_entries(address.gid);
    const bool here =
        std::any_of(entries.begin(), entries.end(), [&](const GidEntry& entry) { return is_at(entry, address); });
    if (here) return *endpoint;
  }
  const auto port = port_with(address, options_.port);
  if (!port) return first();
  // A port that has the address on two interfaces tells of one of them only, and is open all the same.
  for (const auto& endpoint : endpoints_) {
    if (endpoint->device() == port->device && endpoint->port().port == port->port) return *endpoint;
  }
  UdEndpoint* const opened = open_one(*port);
  return opened != nullptr ? *opened : first();
}

std::string in_words(const UdEndpoint& endpoint) {
  const PortName name{endpoint.device(), endpoint.has_more_ports() ? endpoint.port().port : std::uint8_t{0}};
  std::string addresses;
  for (const Gid& gid : endpoint.gids({})) addresses += " " + to_string(gid);
  return fmt::format("{}, queue pair {:#x}, GIDs{}", to_text(name), endpoint.qpns().front(), addresses);
}

}  // namespace verbena::cli
