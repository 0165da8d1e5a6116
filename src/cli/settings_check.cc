// Settings of the software RNIC that it would refuse, found before a device is asked for.
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <net/if.h>

#include "cli/device_settings.h"
#include "device/settings.h"
#include "device/subnet_file.h"
#include "transport/tap/tap.h"

namespace verbena::cli {
namespace {

std::string value_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? std::string() : std::string(value);
}

// Nothing for a name that is an interface here.
std::string refused_interface(std::string_view devices) {
  const auto declarations = device::parse_declarations(devices);
  if (!declarations) return declarations.error().message;
  for (const auto& device : *declarations) {
    for (const auto& [name, infiniband] : device.ports) {
      if (::if_nametoindex(name.c_str()) != 0) continue;
      return fmt::format(
          "VERBENA_DEVICES names \"{}\", which is no interface of this network namespace (`ip link` lists "
          "them), so there is no software device",
          name);
    }
  }
  return {};
}

// Of the file's own text; that it fits the devices is seen when they are opened.
std::string refused_subnet(const std::string& file) {
  const auto lids = device::parse_lid_map(value_of("VERBENA_LIDS"));
  if (!lids) return {};
  const auto subnet = device::read_subnet_file(file, *lids);
  return subnet ? std::string() : subnet.error().message;
}

// As the device will, the file is opened; nothing less shows that it can be written.
std::string refused_capture(const std::string& file) {
  if (file.empty()) return {};
  const auto checked = transport::Tap::check(file);
  return checked ? std::string() : "VERBENA_PCAP: " + checked.error().message;
}

}  // namespace

std::optional<RefusedSetting> find_refused_setting() {
  for (const SettingRow& row : device::kSettingRows) {  // one by one, to know which it is
    const auto only_this = [&](std::string_view variable) -> std::optional<std::string> {
      if (variable != row.variable) return std::nullopt;
      return value_of(std::string(variable).c_str());
    };
    if (const auto settings = device::parse_settings(only_this); !settings) {
      return RefusedSetting{std::string(row.variable), settings.error().message};
    }
  }
  if (std::string why = refused_interface(value_of("VERBENA_DEVICES")); !why.empty()) {
    return RefusedSetting{"VERBENA_DEVICES", std::move(why)};
  }
  if (std::string why = refused_subnet(value_of("VERBENA_SUBNET")); !why.empty()) {
    return RefusedSetting{"VERBENA_SUBNET", std::move(why)};
  }
  if (std::string why = refused_capture(value_of("VERBENA_PCAP")); !why.empty()) {
    return RefusedSetting{"VERBENA_PCAP", std::move(why)};
  }
  return std::nullopt;
}

}  // namespace verbena::cli
