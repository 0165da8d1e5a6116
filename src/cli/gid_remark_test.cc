#include "cli/gid_remark.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

GidEntry entry(const char* gid, GidType type = GidType::kRoceV2) {
  GidEntry made;
  made.gid = *parse_gid(gid);
  made.type = type;
  return made;
}

const GidSurroundings kGood{true, "eth0", true, 4791, ""};

TEST(GidScope, IsThatOfTheAddress) {
  const std::vector<std::pair<const char*, const char*>> cases{
      {"127.0.0.1", "loopback"},  {"::1", "loopback"},           {"169.254.3.4", "link-local"},
      {"fe80::1", "link-local"},  {"fd00::1", "unique-local"},   {"10.1.2.3", "private"},
      {"172.16.0.1", "private"},  {"172.31.255.255", "private"}, {"172.32.0.1", "global"},
      {"192.168.1.1", "private"}, {"192.169.1.1", "global"},     {"8.8.8.8", "global"},
      {"2001:db8::1", "global"},  {"239.1.2.3", "multicast"},    {"ff02::1", "multicast"},
  };
  for (const auto& [gid, scope] : cases) EXPECT_EQ(scope_of(*parse_gid(gid)), scope) << gid;
}

TEST(GidRemark, SaysWhatItIsGoodFor) {
  EXPECT_EQ(remark_on(entry("10.0.0.1"), kGood).text, "yes");
  EXPECT_EQ(remark_on(entry("127.0.0.1"), kGood).text, "yes, on this host only");
  EXPECT_EQ(remark_on(entry("fe80::1"), kGood).text, "yes, on this link only");
  EXPECT_EQ(remark_on(entry("169.254.0.1"), kGood).text, "yes, on this link only");
  EXPECT_TRUE(remark_on(entry("10.0.0.1", GidType::kRoceV1), kGood).usable);
  EXPECT_TRUE(remark_on(entry("fe80::1", GidType::kInfiniBand), {true, "", false, 4791, ""}).usable);
}

TEST(GidRemark, SaysWhoHasThePortOfIt) {
  const auto held = remark_on(entry("10.0.0.1"), {true, "eth0", true, 4791, "process 7 (nc) of user 5"});
  EXPECT_TRUE(held.usable);
  EXPECT_EQ(held.text, "yes, on this host only: UDP port 4791 is held by process 7 (nc) of user 5");
  const auto infiniband = remark_on(entry("fe80::1", GidType::kInfiniBand), {true, "", false, 4797, "process 7"});
  EXPECT_EQ(infiniband.text, "yes, on this host only: UDP port 4797 is held by process 7");
}

TEST(GidRemark, SaysWhyNot) {
  const auto down = remark_on(entry("10.0.0.1"), {false, "eth0", true, 4791, ""});
  EXPECT_FALSE(down.usable);
  EXPECT_EQ(down.text, "no: the port is not active");
  const auto elsewhere = remark_on(entry("10.0.0.1"), {true, "", false, 4791, ""});
  EXPECT_FALSE(elsewhere.usable);
  EXPECT_NE(elsewhere.text.find("network namespace"), std::string::npos);
  const auto interface_down = remark_on(entry("10.0.0.1"), {true, "eth0", false, 4791, ""});
  EXPECT_FALSE(interface_down.usable);
  EXPECT_EQ(interface_down.text, "no: interface eth0 is down");
}

TEST(GidRemark, APortWithoutAGidIsNamedWithWhatToDo) {
  EXPECT_NE(no_gid_in_words({}).find("no verbs device"), std::string::npos);
  const std::string one = no_gid_in_words({"verbena0/2"});
  EXPECT_TRUE(one.starts_with("verbena0/2 has no GID.")) << one;
  EXPECT_NE(one.find("ip address add"), std::string::npos);
  EXPECT_TRUE(no_gid_in_words({"verbena0", "mlx5_0"}).starts_with("verbena0, mlx5_0 have no GID."));
}

}  // namespace
}  // namespace verbena::cli
