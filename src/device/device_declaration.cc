#include "device/device_declaration.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/setting_value.h"

namespace verbena::device {
namespace {

constexpr std::string_view kVariable = "VERBENA_DEVICES";

// Takes what stands before the next `separator` off `text`.
std::string_view take(std::string_view& text, char separator) {
  const auto end = text.find(separator);
  const auto first = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return first;
}

Result<bool> parse_link_layer(std::string_view value) {
  if (value == "infiniband") return true;
  if (value == "ethernet") return false;
  return wrong_part(kVariable, "link_layer=" + std::string(value), "must be ethernet or infiniband");
}

// `device`: all of what the port is declared in.
Result<PortDeclaration> parse_port(std::string_view device, std::string_view text) {
  PortDeclaration made;
  const bool has_keys = text.starts_with('/');
  made.interface = take(text, '/');
  if (made.interface.empty()) {
    return wrong_part(kVariable, device,
                      has_keys ? "has no interface in front of a /: write eth0/link_layer=infiniband"
                               : "has no interface on one side of a +: write eth0+eth1");
  }
  std::vector<std::string_view> keys;
  bool infiniband = false;
  bool has_attributes = false;
  InfinibandPort port;
  while (!text.empty()) {
    const auto part = take(text, '/');
    const auto equals = part.find('=');
    if (equals == std::string_view::npos) return wrong_part(kVariable, part, "is no KEY=VALUE");
    const auto key = part.substr(0, equals);
    const auto value = part.substr(equals + 1);
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) {
      return wrong_part(kVariable, part, "gives a key that its port has already");
    }
    keys.push_back(key);
    if (key == "link_layer") {
      const auto is_infiniband = parse_link_layer(value);
      if (!is_infiniband) return tl::make_unexpected(is_infiniband.error());
      infiniband = *is_infiniband;
      continue;
    }
    if (auto set = set_attribute(kVariable, key, value, port); !set) return tl::make_unexpected(set.error());
    has_attributes = true;
  }
  if (has_attributes && !infiniband) {
    return wrong_part(kVariable, made.interface, "has attributes of an InfiniBand port: add link_layer=infiniband");
  }
  if (auto checked = check(kVariable, port); !checked) return tl::make_unexpected(checked.error());
  if (infiniband) made.infiniband = port;
  return made;
}

// Takes the first port off `text`: up to a plus sign that has no further P_Key behind it.
std::string_view take_port(std::string_view& text) {
  std::size_t end = 0;
  for (;;) {
    end = text.find('+', end);
    if (end == std::string_view::npos) break;
    const std::string_view before = text.substr(0, end);
    const std::size_t slash = before.rfind('/');
    const bool after_pkeys = slash != std::string_view::npos && before.substr(slash + 1).starts_with("pkeys=");
    const bool digit = end + 1 < text.size() && text[end + 1] >= '0' && text[end + 1] <= '9';
    if (!after_pkeys || !digit) break;
    ++end;
  }
  const std::string_view port = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return port;
}

// On one interface there is one Ethernet port; InfiniBand ports differ by their LIDs.
Status check_interfaces(std::span<const PortDeclaration> ports) {
  for (std::size_t i = 0; i < ports.size(); ++i) {
    for (const PortDeclaration& other : ports.subspan(i + 1)) {
      const auto& one = ports[i].infiniband;
      const auto& two = other.infiniband;
      const bool shares_lids = one && two && one->lid <= two->last_lid() && two->lid <= one->last_lid();
      if (!shares_lids && (ports[i].interface != other.interface || one != two)) continue;
      return wrong_part(kVariable, other.interface,
                        other.infiniband ? "stands for two ports of one device: give one of them another lid="
                                         : "stands for two ports of one device: each Ethernet port needs its own");
    }
  }
  return {};
}

Result<DeviceDeclaration> parse_declaration(std::string_view text) {
  DeviceDeclaration made;
  const bool ends_open = text.ends_with('+');
  for (std::string_view rest = text; !rest.empty() || made.ports.empty();) {
    auto port = parse_port(text, take_port(rest));
    if (!port) return tl::make_unexpected(port.error());
    made.ports.push_back(std::move(*port));
  }
  if (ends_open) return wrong_part(kVariable, text, "ends with +, and has no interface behind it: write eth0+eth1");
  if (made.ports.size() > DeviceDeclaration::kMaxPorts) {
    return wrong_part(kVariable, text, "has more than the 8 ports that a device may have");
  }
  if (auto checked = check_interfaces(made.ports); !checked) return tl::make_unexpected(checked.error());
  return made;
}

}  // namespace

Result<std::vector<DeviceDeclaration>> parse_declarations(std::string_view text) {
  std::vector<DeviceDeclaration> declarations;
  while (!text.empty()) {
    const auto item = take(text, ',');
    if (item.empty()) continue;
    auto declaration = parse_declaration(item);
    if (!declaration) return tl::make_unexpected(declaration.error());
    declarations.push_back(std::move(*declaration));
  }
  return declarations;
}

}  // namespace verbena::device
