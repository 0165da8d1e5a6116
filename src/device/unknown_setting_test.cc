#include "device/unknown_setting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/settings.h"

namespace verbena::device {
namespace {

using ::testing::HasSubstr;

TEST(UnknownSetting, IsNamedWithTheNearestThatThereIs) {
  const std::pair<const char*, const char*> cases[] = {
      {"VERBENA_IMPAR", "VERBENA_IMPAIR"}, {"VERBENA_DEVICE", "VERBENA_DEVICES"}, {"VERBENA_PCAPNG", "VERBENA_PCAP"},
      {"VERBENA_LOGLEVEL", "VERBENA_LOG"}, {"VERBENA_UPD", "VERBENA_UDP"},        {"VERBENA_LIMIT", "VERBENA_LIMITS"},
  };
  for (const auto& [typed, meant] : cases) {
    const auto said = explain_unknown_setting(typed);
    ASSERT_TRUE(said) << typed;
    EXPECT_THAT(*said, HasSubstr(std::string(typed) + " is no setting")) << typed;
    EXPECT_THAT(*said, HasSubstr(std::string(meant) + "?"));
  }
}

TEST(UnknownSetting, WithoutANearOneAllAreNamed) {
  const auto said = explain_unknown_setting("VERBENA_COMPLETELY_DIFFERENT");
  ASSERT_TRUE(said);
  for (const SettingRow& row : kSettingRows) EXPECT_THAT(*said, HasSubstr(std::string(row.variable)));
}

TEST(UnknownSetting, NothingIsSaidOfSettingsAndOfWhatOthersPutThere) {
  for (const SettingRow& row : kSettingRows) EXPECT_FALSE(explain_unknown_setting(row.variable)) << row.variable;
  for (const char* other : {"PATH", "verbena_log", "XVERBENA_LOG", "VERBENA_E2E_USERS", "VERBENA_BUILD",
                            "VERBENA_AGENT_SERVICE_HOST", "VERBENA_PORT", "VERBENA_PORT_9100_TCP_ADDR"}) {
    EXPECT_FALSE(explain_unknown_setting(other)) << other;
  }
}

}  // namespace
}  // namespace verbena::device
