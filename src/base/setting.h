// A setting: its environment variable, its default and what it means. One row each, in one table a room.
#pragma once

#include <string_view>

namespace verbena {

struct SettingRow {
  std::string_view variable;  // "VERBENA_DEVICES"
  std::string_view syntax;    // "IFACE[,IFACE...]"
  std::string_view standard;  // the default, in the same syntax
  std::string_view doc;
};

}  // namespace verbena
