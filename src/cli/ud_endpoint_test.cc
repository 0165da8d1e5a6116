#include "cli/ud_endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_verbs/fake_verbs.h"

namespace verbena::cli {
namespace {

using ::testing::HasSubstr;

class UdEndpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake::reset();
    fake::add_device("mlx5_0", {fake::Port{.gids = {{.gid = *parse_gid("10.0.0.1")}}},
                                fake::Port{.state = IBV_PORT_DOWN, .gids = {}}});
  }
};

TEST_F(UdEndpointTest, OfNoNumberIsOnAnActivePort) {
  const auto endpoint = UdEndpoint::open({.port = {.device = "mlx5_0", .port = 0}});
  ASSERT_TRUE(endpoint) << endpoint.error().message;
  EXPECT_EQ((*endpoint)->port().port, 1);
}

TEST_F(UdEndpointTest, IsNotOpenedOnAPortThatIsDown) {
  const auto endpoint = UdEndpoint::open({.port = {.device = "mlx5_0", .port = 2}});
  ASSERT_FALSE(endpoint);
  EXPECT_EQ(endpoint.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(endpoint.error().message, HasSubstr("mlx5_0 port 2 is "));
}

TEST_F(UdEndpointTest, OfANumberThatIsNotThereNamesThoseThatAre) {
  const auto endpoint = UdEndpoint::open({.port = {.device = "mlx5_0", .port = 9}});
  ASSERT_FALSE(endpoint);
  EXPECT_EQ(endpoint.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(endpoint.error().message, "mlx5_0 has no port 9: its ports are 1 to 2");
}

}  // namespace
}  // namespace verbena::cli
