#include "device/device_declaration.h"

#include <utility>

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

Result<DeviceDeclaration> parse_declaration(std::string_view text) {
  DeviceDeclaration made;
  made.interface = take(text, '/');
  bool infiniband = false;
  bool has_attributes = false;
  InfinibandPort port;
  while (!text.empty()) {
    const auto part = take(text, '/');
    const auto equals = part.find('=');
    if (equals == std::string_view::npos) return wrong_part(kVariable, part, "is no KEY=VALUE");
    const auto key = part.substr(0, equals);
    const auto value = part.substr(equals + 1);
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
