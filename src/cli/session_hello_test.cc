#include "cli/session_hello.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace verbena::cli {
namespace {

SessionHello example() {
  SessionHello hello;
  hello.gids = {*parse_gid("10.0.0.7"), *parse_gid("fe80::1")};
  hello.qpns = {0x10011, 0x10012};
  hello.qkey = 0x7fffffff;
  hello.mtu = 4096;
  hello.lid = 7;
  hello.client = 3;
  hello.device = "verbena0";
  hello.types = {"RoCE v2", "RoCE v2"};
  hello.link_layer = "ethernet";
  hello.netdev = "eth0";
  hello.netdev_mtu = 9000;
  hello.rate_mbps = 100000;
  return hello;
}

TEST(SessionHello, RoundTrips) {
  const auto decoded = decode_session_hello(encode(example()));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(*decoded, example());
}

TEST(SessionHello, IsOneLine) {
  SessionHello hello = example();
  hello.device = "two\nlines";
  EXPECT_EQ(encode(hello).find('\n'), std::string::npos);
}

TEST(SessionHello, RejectsEveryTruncation) {
  const std::string line = encode(example());
  for (std::size_t size = 0; size < line.size(); ++size) {
    EXPECT_FALSE(decode_session_hello(line.substr(0, size))) << size;
  }
}

TEST(SessionHello, RejectsEachFieldThatIsMissingOrOfAnotherKind) {
  const auto whole = nlohmann::json::parse(encode(example()));
  for (const auto& [key, value] : whole.items()) {
    if (key == "error") continue;
    auto without = whole;
    without.erase(key);
    const bool older =
        key == "types" || key == "link_layer" || key == "netdev" || key == "netdev_mtu" || key == "rate_mbps";
    EXPECT_EQ(static_cast<bool>(decode_session_hello(without.dump())), older) << key;
    for (const auto& wrong : {nlohmann::json(nullptr), nlohmann::json(-1), nlohmann::json(1.5),
                              nlohmann::json::array({nlohmann::json::object()}), nlohmann::json::object()}) {
      auto changed = whole;
      changed[key] = wrong;
      EXPECT_FALSE(decode_session_hello(changed.dump())) << key << " = " << wrong.dump();
    }
  }
}

TEST(SessionHello, RejectsNumbersThatDoNotFit) {
  auto json = nlohmann::json::parse(encode(example()));
  json["qpns"] = {0x1000000};
  EXPECT_FALSE(decode_session_hello(json.dump()));
  json = nlohmann::json::parse(encode(example()));
  json["lid"] = 0x10000;
  EXPECT_FALSE(decode_session_hello(json.dump()));
  json = nlohmann::json::parse(encode(example()));
  json["qkey"] = 0x100000000;
  EXPECT_FALSE(decode_session_hello(json.dump()));
}

TEST(SessionHello, RejectsAnotherVersionAndWhatIsNoHello) {
  auto json = nlohmann::json::parse(encode(example()));
  json["verbena_ping"] = 2;
  EXPECT_FALSE(decode_session_hello(json.dump()));
  for (const char* text : {"", "null", "[]", "{}", "GET / HTTP/1.1", "{\"verbena_ping\":1}"}) {
    EXPECT_FALSE(decode_session_hello(text)) << text;
  }
}

TEST(SessionHello, AnErrorIsTheErrorOfTheOtherEnd) {
  SessionHello hello;
  hello.error = "no active port";
  const auto decoded = decode_session_hello(encode(hello));
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(decoded.error().message.find("no active port"), std::string::npos);
}

}  // namespace
}  // namespace verbena::cli
