#include "transport/udp/steering.h"

#include <gtest/gtest.h>

namespace verbena::transport {
namespace {

constexpr std::string_view kUdp =
    "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer "
    "drops             \n"
    "  123: 0100007F:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 42 2 0 0         \n"
    "  124: 0100007F:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 43 2 0 0         \n"
    "  125: 0200007F:12B7 0100007F:12B7 07 00000000:00000000 00:00000000 00000000     0        0 44 2 0 0         \n"
    "  126: 0100007F:C000 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 45 2 0 0         \n";

constexpr std::string_view kUdp6 =
    "  125: 000080FE00000000FF005450010000FE:12B7 00000000000000000000000000000000:0000 07 00000000:00000000 "
    "00:00000000 00000000     0        0 12 2 0 0\n";

TEST(Steering, CountsTheSocketsOfAnAddress) {
  EXPECT_EQ(count_bound_sockets(kUdp, *parse_gid("127.0.0.1"), 4791), 2U);
  EXPECT_EQ(count_bound_sockets(kUdp, *parse_gid("127.0.0.2"), 4791), 1U);
  EXPECT_EQ(count_bound_sockets(kUdp, *parse_gid("127.0.0.3"), 4791), 0U);
  EXPECT_EQ(count_bound_sockets(kUdp6, *parse_gid("fe80::5054:00ff:fe00:0001"), 4791), 1U);
  EXPECT_EQ(count_bound_sockets("", *parse_gid("127.0.0.1"), 4791), 0U);
}

}  // namespace
}  // namespace verbena::transport
