#include "verbena/resolve.h"

#include <atomic>
#include <future>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <net/if.h>

namespace verbena {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

Gid gid(const char* text) {
  return *parse_gid(text);
}

TEST(DestinationText, EachKeyGoesIntoItsField) {
  const auto read = parse_destination(
      "10.0.0.2,tc=0x68,sl=3,rate=25g,netdev=lo,src=10.0.0.1,port=2,flow=0xabcde,hops=7,pathbits=5,lid=9");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, (Destination{.gid = gid("10.0.0.2"),
                                .source = gid("10.0.0.1"),
                                .flow_label = 0xabcde,
                                .netdev = if_nametoindex("lo"),
                                .lid = 9,
                                .traffic_class = 0x68,
                                .service_level = 3,
                                .hop_limit = 7,
                                .static_rate = IBV_RATE_25_GBPS,
                                .source_path_bits = 5,
                                .port = 2}));
  EXPECT_EQ(*parse_destination(to_text(*read)), *read);
}

TEST(DestinationText, APlaceIsAnAddressOrALid) {
  EXPECT_EQ(parse_destination("2001:db8::2")->gid, gid("2001:db8::2"));
  EXPECT_EQ(parse_destination("::ffff:10.0.0.2")->gid, gid("10.0.0.2"));
  const auto scoped = parse_destination("fe80::2%lo");
  ASSERT_TRUE(scoped) << scoped.error().message;
  EXPECT_EQ(scoped->netdev, if_nametoindex("lo"));
  const auto lid = parse_destination("lid=7,sl=2");
  ASSERT_TRUE(lid);
  EXPECT_EQ(lid->lid, 7);
  EXPECT_TRUE(lid->gid.is_zero());
  EXPECT_EQ(parse_destination("lid=7,gid=fe80::7")->gid, gid("fe80::7"));
  for (const char* text : {"lid=7", "lid=7,gid=fe80::7", "10.0.0.2", "fe80::2%lo", "10.0.0.2,dscp=26,rate=2.5g"}) {
    EXPECT_EQ(*parse_destination(to_text(*parse_destination(text))), *parse_destination(text)) << text;
  }
  EXPECT_EQ(parse_destination("10.0.0.2,dscp=26")->traffic_class, 0x68);
}

TEST(DestinationText, WhatIsWrongIsNamed) {
  struct Case {
    const char* text;
    const char* says;
  };
  for (const Case& c : {
           Case{"", "no IPv4 or IPv6 address"},
           Case{"10.0.0.300", "\"10.0.0.300\" is no IPv4"},
           Case{"10.0.0", "is no IPv4"},
           Case{"not a host", "is no IPv4"},
           Case{"-host", "is no IPv4"},
           Case{"::", "zero address"},
           Case{"0.0.0.0,sl=1", "zero address"},
           Case{"storage-7", "host name"},
           Case{"10.0.0.2,sl=16", "sl=16 is no number from 0 to 15"},
           Case{"10.0.0.2,sl=", "sl= is no number"},
           Case{"10.0.0.2,sl=-1", "sl=-1 is no number"},
           Case{"10.0.0.2,sl=1x", "sl=1x"},
           Case{"10.0.0.2,sl=99999999999", "sl=99999999999"},
           Case{"10.0.0.2,tc=0x100", "tc=0x100"},
           Case{"10.0.0.2,tc=0x", "tc=0x is no"},
           Case{"10.0.0.2,dscp=64", "from 0 to 63"},
           Case{"10.0.0.2,tc=1,dscp=1", "dscp is given after tc"},
           Case{"10.0.0.2,sl=1,sl=1", "sl is given after sl"},
           Case{"10.0.0.2,gid=10.0.0.3", "gid is given after gid"},
           Case{"fe80::1%lo,netdev=lo", "netdev is given after netdev"},
           Case{"10.0.0.2,flow=0x100000", "flow=0x100000 is no number from 0 to 1048575 (0xfffff)"},
           Case{"10.0.0.2,hops=0", "from 1 to 255"},
           Case{"10.0.0.2,rate=26g", "2.5g"},
           Case{"10.0.0.2,colour=red", "the keys are lid, gid, src"},
           Case{"10.0.0.2,", "\"\" is no key=value"},
           Case{"10.0.0.2,sl", "\"sl\" is no key=value"},
           Case{"sl=1", "names no place"},
           Case{"lid=0", "lid=0 is no number from 1"},
           Case{"lid=0xc000", "from 1 to 49151"},
           Case{"10.0.0.2,src=::", "zero address"},
       }) {
    const auto read = parse_destination(c.text);
    ASSERT_FALSE(read) << c.text;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument) << c.text;
    EXPECT_THAT(read.error().message, HasSubstr(c.says));
    EXPECT_THAT(read.error().message, HasSubstr(c.text));
  }
  const auto none = parse_destination("10.0.0.2,netdev=nosuchif0");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
}

TEST(DestinationText, AClassOfServiceReplacesTheFourFields) {
  const Destination to = with(*parse_destination("10.0.0.2,flow=5"),
                              {.traffic_class = 0x68, .service_level = 3, .hop_limit = 9, .static_rate = 2});
  EXPECT_EQ(to, *parse_destination("10.0.0.2,flow=5,tc=0x68,sl=3,hops=9,rate=2.5g"));
}

TEST(Spread, LabelsBecomePortsAsTheAnnexSays) {
  EXPECT_EQ(udp_source_port(0), 0xc000);
  EXPECT_EQ(udp_source_port(0x00001), 0xc001);
  EXPECT_EQ(udp_source_port(0x04000), 0xc001);
  EXPECT_EQ(udp_source_port(0xfffff), 0xc000 | (0x3fff ^ 0x3f));
  EXPECT_EQ(udp_source_port(0xabcde), 0xc000 | ((0xabcde & 0x3fff) ^ (0xabcde >> 14)));
}

TEST(Spread, EachPathHasALabelAndAPortOfItsOwn) {
  const Destination to = *parse_destination("10.0.0.2,sl=3");
  for (const std::uint64_t hash : {0ULL, 1ULL, 0xdeadbeefULL, ~0ULL}) {
    const auto all = spread(to, 16384, hash);
    ASSERT_TRUE(all);
    std::set<std::uint16_t> ports;
    for (Destination path : *all) {
      EXPECT_NE(path.flow_label, 0U);
      EXPECT_LE(path.flow_label, 0xfffffU);
      ports.insert(udp_source_port(path.flow_label));
      path.flow_label = 0;
      EXPECT_EQ(path, to);
    }
    EXPECT_EQ(ports.size(), 16384U) << hash;
  }
}

// However a router hashes: by the range, or by the low bits.
TEST(Spread, AnyNumberOfPathsLiesEvenly) {
  for (std::uint64_t hash = 0; hash < 50; ++hash) {
    for (const std::size_t paths : {8U, 64U, 256U}) {
      const auto all = spread(*parse_destination("10.0.0.2"), paths, hash);
      std::array<std::size_t, 4> by_range{};
      std::array<std::size_t, 4> by_low_bits{};
      for (const Destination& path : *all) {
        const unsigned port = udp_source_port(path.flow_label) & 0x3fffU;
        ++by_range[port / 4096];
        ++by_low_bits[port % 4];
      }
      for (std::size_t i = 0; i < 4; ++i) {
        const std::size_t off = 1 + paths / 64;  // by chance, 256 paths would be off by 7 and more
        EXPECT_GE(by_range[i] + off, paths / 4) << paths << " paths, hash " << hash;
        EXPECT_LE(by_range[i], paths / 4 + off) << paths << " paths, hash " << hash;
        EXPECT_EQ(by_low_bits[i], paths / 4) << paths << " paths, hash " << hash;
      }
    }
  }
}

TEST(Spread, SendersDiffer) {
  const Destination to = *parse_destination("10.0.0.2");
  EXPECT_NE(spread(to, 1, 1)->front(), spread(to, 1, 2)->front());
  EXPECT_EQ(*spread(to, 9, 1), *spread(to, 9, 1));
}

TEST(Spread, NoPathAndMoreThanThereArePortsAreRefused) {
  for (const std::size_t paths : {std::size_t{0}, std::size_t{16385}}) {
    const auto none = spread(*parse_destination("10.0.0.2"), paths, 0);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(ResolveHost, AnAddressIsItself) {
  EXPECT_EQ(resolve_host("10.0.0.2", Deadline::at({}))->at(0).gid, gid("10.0.0.2"));
  EXPECT_EQ(resolve_destination("10.0.0.2,sl=3", Deadline::at({}))->at(0), *parse_destination("10.0.0.2,sl=3"));
}

TEST(ResolveHost, LocalhostIsLoopback) {
  const auto all = resolve_destination("localhost,sl=3", Deadline::in(seconds(60)));
  ASSERT_TRUE(all) << all.error().message;
  for (const Destination& destination : *all) {
    EXPECT_TRUE(destination.gid.is_loopback());
    EXPECT_EQ(destination.service_level, 3);
  }
}

TEST(ResolveHost, RoutedAddressesGoFirstLoopbackLastAndEachOnce) {
  const HostLookup lookup = [](const std::string&) -> Result<std::vector<HostAddress>> {
    return std::vector<HostAddress>{{gid("127.0.1.1"), 0},
                                    {gid("fe80::2"), 7},
                                    {gid("2001:db8::2"), 0},
                                    {gid("10.0.0.2"), 0},
                                    {gid("10.0.0.2"), 0}};
  };
  EXPECT_EQ(*resolve_host("ranked", Deadline::in(seconds(60)), lookup),
            (std::vector<HostAddress>{
                {gid("2001:db8::2"), 0}, {gid("10.0.0.2"), 0}, {gid("fe80::2"), 7}, {gid("127.0.1.1"), 0}}));
}

TEST(ResolveHost, ADeadlineEndsTheWaitAndTheAnswerServesTheNext) {
  std::promise<void> answer;
  std::shared_future<void> answered = answer.get_future().share();
  auto asked = std::make_shared<std::atomic<int>>(0);
  const HostLookup lookup = [answered, asked](const std::string&) -> Result<std::vector<HostAddress>> {
    ++*asked;
    answered.wait();
    return std::vector<HostAddress>{{gid("10.0.0.2"), 0}};
  };
  const auto late = resolve_host("slow", Deadline::in(std::chrono::milliseconds(1)), lookup);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kTimedOut);
  EXPECT_THAT(late.error().message, HasSubstr("slow"));
  std::thread next([&] {
    const auto got = resolve_host("slow", Deadline::in(seconds(60)), lookup);
    EXPECT_TRUE(got);
  });
  answer.set_value();
  next.join();
  EXPECT_LE(*asked, 2) << "one question for both, but where the second came after the answer";
}

TEST(ResolveHost, QuestionsWithoutAnAnswerAreBounded) {
  std::promise<void> answer;
  std::shared_future<void> answered = answer.get_future().share();
  const HostLookup lookup = [answered](const std::string&) -> Result<std::vector<HostAddress>> {
    answered.wait();
    return std::vector<HostAddress>{{gid("10.0.0.2"), 0}};
  };
  ErrorCode last = ErrorCode::kInternal;
  for (int i = 0; i < 40; ++i) {
    last = resolve_host("dead-" + std::to_string(i), Deadline::at({}), lookup).error().code;
    EXPECT_EQ(last, i < 32 ? ErrorCode::kTimedOut : ErrorCode::kExhausted) << i;
  }
  answer.set_value();
  while (!resolve_host("alive", Deadline::in(seconds(60)), lookup)) std::this_thread::yield();
}

TEST(ResolveHost, ANameThatNobodyHasIsNotFound) {
  const HostLookup lookup = [](const std::string&) -> Result<std::vector<HostAddress>> {
    return std::vector<HostAddress>{};
  };
  const auto none = resolve_host("nobody", Deadline::in(seconds(60)), lookup);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(resolve_host("", Deadline::at({})));
}

}  // namespace
}  // namespace verbena
