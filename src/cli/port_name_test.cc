#include "cli/port_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

using testing::HasSubstr;

TEST(PortName, IsADeviceOrAPortOfIt) {
  EXPECT_EQ(parse_port_name(""), PortName{});
  EXPECT_EQ(parse_port_name("verbena0"), (PortName{.device = "verbena0"}));
  EXPECT_EQ(parse_port_name("mlx5_0/2"), (PortName{.device = "mlx5_0", .port = 2}));
  EXPECT_EQ(to_text({.device = "verbena0"}), "verbena0");
  EXPECT_EQ(to_text({.device = "verbena0", .port = 2}), "verbena0/2");
}

TEST(PortName, RefusesWhatNamesNoPort) {
  for (const char* text : {"verbena0/", "verbena0/0", "verbena0/256", "verbena0/two", "verbena0/2x", "/2", "a/b/2"}) {
    const auto name = parse_port_name(text);
    ASSERT_FALSE(name) << text;
    EXPECT_THAT(name.error().message, HasSubstr(text));
    EXPECT_THAT(name.error().message, HasSubstr("verbena0/2"));
  }
}

TEST(PortName, FitsWhatItDoesNotSay) {
  EXPECT_TRUE(PortName{}.names_device("mlx5_0"));
  EXPECT_TRUE((PortName{.device = "mlx5_0"}).names_port(2));
  EXPECT_FALSE((PortName{.device = "mlx5_0", .port = 1}).names_port(2));
  EXPECT_FALSE((PortName{.device = "mlx5_0"}).names_device("mlx5_1"));
}

}  // namespace
}  // namespace verbena::cli
