#include "device/settings.h"

#include <map>

#include <gtest/gtest.h>

namespace verbena::device {
namespace {

Result<Settings> parse(const std::map<std::string, std::string, std::less<>>& environment) {
  return parse_settings([&environment](std::string_view name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    return found == environment.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(Settings, AnEmptyEnvironmentGivesTheDefaults) {
  const auto settings = parse({});
  ASSERT_TRUE(settings);
  EXPECT_TRUE(settings->devices.empty());
  EXPECT_TRUE(settings->shared_memory);
  EXPECT_TRUE(settings->udp);
  EXPECT_EQ(settings->log_level, "warn");
}

TEST(Settings, KeepTheOrderOfTheInterfaces) {
  const auto settings = parse({{"VERBENA_DEVICES", "eth1,,lo"}});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->devices, (std::vector<DeviceDeclaration>{{.ports = {{"eth1"}}}, {.ports = {{"lo"}}}}));
}

TEST(Settings, ABadValueIsNamedWithItsVariable) {
  for (const auto* variable : {"VERBENA_SHM", "VERBENA_UDP", "VERBENA_STRICT", "VERBENA_IMPAIR", "VERBENA_LIMITS",
                               "VERBENA_INJECT", "VERBENA_LOG"}) {
    const auto settings = parse({{variable, "perhaps"}});
    ASSERT_FALSE(settings);
    EXPECT_NE(settings.error().message.find(variable), std::string::npos);
    EXPECT_NE(settings.error().message.find("perhaps"), std::string::npos);
  }
}

TEST(Settings, EveryRowHasAllItsWords) {
  for (const auto& row : kSettingRows) {
    EXPECT_TRUE(row.variable.starts_with("VERBENA_"));
    EXPECT_FALSE(row.syntax.empty() || row.standard.empty() || row.doc.empty()) << row.variable;
  }
}

}  // namespace
}  // namespace verbena::device
