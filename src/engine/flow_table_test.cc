#include "engine/flow_table.h"

#include <vector>

#include <gtest/gtest.h>

namespace verbena::engine {
namespace {

using wire::FrameFields;

constexpr Qpn kOne{1};
constexpr Qpn kTwo{2};
constexpr Qpn kThree{3};

FrameFields udp_to(std::uint16_t port) {
  FrameFields fields;
  fields.destination = {{0x02, 0, 0, 0, 0, 1}};
  fields.ether_type = wire::kEtherTypeIpv4;
  fields.ip_version = 4;
  fields.ip_destination = {10, 9, 0, 2};
  fields.transport = wire::kProtocolUdp;
  fields.destination_port = port;
  return fields;
}

FrameFields to_group() {
  FrameFields fields = udp_to(9);
  fields.destination = {{0x01, 0, 0x5e, 0, 0, 1}};
  return fields;
}

FlowRule rule_for(std::uint16_t port, std::uint16_t priority = 0) {
  FlowRule rule;
  rule.priority = priority;
  rule.value.transport = wire::kProtocolUdp;
  rule.value.destination_port = port;
  rule.mask.transport = 0xff;
  rule.mask.destination_port = 0xffff;
  return rule;
}

FlowRule rule_for_address(std::uint8_t last, std::uint16_t priority = 0) {
  FlowRule rule;
  rule.priority = priority;
  rule.value.ip_version = 4;
  rule.value.ip_destination = {10, 9, 0, last};
  rule.mask.ip_version = 0xff;
  rule.mask.ip_destination = {0xff, 0xff, 0xff, 0xff};
  return rule;
}

FlowRule of_kind(FlowKind kind) {
  FlowRule rule;
  rule.kind = kind;
  return rule;
}

struct Steered {
  std::vector<Qpn> to;
  bool dropped = false;
};

Steered steer(const FlowTable& table, const FrameFields& fields) {
  Steered steered;
  steered.dropped = table.steer(fields, [&](Qpn qpn) { steered.to.push_back(qpn); });
  return steered;
}

using Qpns = std::vector<Qpn>;

TEST(FlowTable, WithoutARuleNothingArrives) {
  EXPECT_EQ(steer(FlowTable(), udp_to(9)).to, Qpns{});
}

TEST(FlowTable, TheLowestPriorityTakesItWhicheverCameFirst) {
  FlowTable table;
  table.add(1, kOne, rule_for(9, 7));
  table.add(2, kTwo, rule_for_address(2, 3));
  EXPECT_EQ(steer(table, udp_to(9)).to, Qpns{kTwo});
  table.remove(2);
  EXPECT_EQ(steer(table, udp_to(9)).to, Qpns{kOne});
  EXPECT_EQ(steer(table, udp_to(10)).to, Qpns{});
}

TEST(FlowTable, OfOnePriorityTheOlderTakesIt) {
  FlowTable table;
  table.add(1, kOne, rule_for(9));
  table.add(2, kTwo, rule_for_address(2));
  EXPECT_EQ(steer(table, udp_to(9)).to, Qpns{kOne});
  EXPECT_EQ(steer(table, udp_to(10)).to, Qpns{kTwo});
}

TEST(FlowTable, TwinsShareAndAQueuePairGetsOneCopyOfItsTwins) {
  FlowTable table;
  table.add(1, kOne, rule_for(9));
  table.add(2, kTwo, rule_for(9));
  table.add(3, kTwo, rule_for(9));
  table.add(4, kThree, rule_for(9, 1));
  EXPECT_EQ(steer(table, udp_to(9)).to, (Qpns{kOne, kTwo}));
  table.remove(2);
  EXPECT_EQ(steer(table, udp_to(9)).to, (Qpns{kOne, kTwo}));
}

TEST(FlowTable, OfTwinsThatGoTheNextOneTakesOver) {
  FlowTable table;
  for (const std::uint64_t id : {1U, 2U, 3U}) table.add(id, kOne, rule_for(9));
  table.add(4, kTwo, rule_for(9, 1));
  EXPECT_EQ(table.size(), 4U);
  for (const std::uint64_t id : {2U, 1U}) {
    table.remove(id);
    EXPECT_EQ(steer(table, udp_to(9)).to, Qpns{kOne}) << "without " << id;
  }
  table.remove(77);
  table.remove(3);
  EXPECT_EQ(steer(table, udp_to(9)).to, Qpns{kTwo});
}

// The older passes the frame on, its twin of the same queue pair keeps it.
TEST(FlowTable, ATwinThatDoesNotPassOnTakesItAllTheSame) {
  FlowTable table;
  FlowRule copies = rule_for(9);
  copies.passes_on = true;
  table.add(1, kOne, copies);
  table.add(2, kOne, rule_for(9));
  table.add(3, kTwo, rule_for(9, 1));
  EXPECT_EQ(steer(table, udp_to(9)).to, Qpns{kOne});
  table.remove(2);
  EXPECT_EQ(steer(table, udp_to(9)).to, (Qpns{kOne, kTwo}));
}

TEST(FlowTable, ValuesUnderNoMaskDoNotCount) {
  FlowTable table;
  FlowRule other = rule_for(9);
  other.value.source_port = 77;  // not masked
  table.add(1, kOne, rule_for(9));
  table.add(2, kTwo, other);
  EXPECT_EQ(steer(table, udp_to(9)).to, (Qpns{kOne, kTwo}));
}

TEST(FlowTable, ARuleThatPassesOnGetsACopy) {
  FlowTable table;
  FlowRule copies = rule_for(9);
  copies.passes_on = true;
  table.add(1, kOne, copies);
  table.add(2, kTwo, rule_for_address(2, 5));
  EXPECT_EQ(steer(table, udp_to(9)).to, (Qpns{kOne, kTwo}));
}

TEST(FlowTable, ARuleThatDropsKeepsItFromThoseBehind) {
  FlowTable table;
  FlowRule drop = rule_for(9);
  drop.drops = true;
  table.add(1, kOne, drop);
  table.add(2, kTwo, rule_for_address(2, 5));
  const Steered steered = steer(table, udp_to(9));
  EXPECT_EQ(steered.to, Qpns{});
  EXPECT_TRUE(steered.dropped);
  EXPECT_EQ(steer(table, udp_to(10)).to, Qpns{kTwo});
}

TEST(FlowTable, DefaultsGetWhatNoNormalRuleTakes) {
  FlowTable table;
  table.add(1, kOne, of_kind(FlowKind::kAllDefault));
  table.add(2, kTwo, of_kind(FlowKind::kGroupDefault));
  table.add(3, kThree, rule_for(10));
  EXPECT_EQ(steer(table, udp_to(9)).to, Qpns{kOne});
  EXPECT_EQ(steer(table, to_group()).to, Qpns{kTwo});
  EXPECT_EQ(steer(table, udp_to(10)).to, Qpns{kThree});
  table.remove(2);
  EXPECT_EQ(steer(table, to_group()).to, Qpns{kOne});
}

TEST(FlowTable, SniffersGetACopyOfEverything) {
  FlowTable table;
  table.add(1, kOne, rule_for(9));
  table.add(2, kTwo, of_kind(FlowKind::kSniffer));
  table.add(3, kThree, of_kind(FlowKind::kSniffer));
  EXPECT_EQ(steer(table, udp_to(9)).to, (Qpns{kTwo, kThree, kOne}));
  EXPECT_EQ(steer(table, udp_to(10)).to, (Qpns{kTwo, kThree}));
  FlowRule drop = rule_for(10);
  drop.drops = true;
  table.add(4, kOne, drop);
  EXPECT_EQ(steer(table, udp_to(10)).to, (Qpns{kTwo, kThree}));
}

TEST(FlowTable, KnowsWhoHasRules) {
  FlowTable table;
  EXPECT_TRUE(table.empty());
  table.add(1, kOne, rule_for(9));
  table.add(2, kOne, rule_for(10));
  EXPECT_TRUE(table.has_rule_of(kOne));
  EXPECT_FALSE(table.has_rule_of(kTwo));
  table.remove(1);
  EXPECT_TRUE(table.has_rule_of(kOne));
  table.remove(2);
  EXPECT_TRUE(table.empty());
}

// One field after the other: under its mask a difference counts, outside of it none does.
TEST(FlowRule, EachFieldCountsUnderItsMaskOnly) {
  const auto check = [](auto set) {
    FrameFields fields = udp_to(9);
    FlowRule rule;
    rule.value = fields;
    set(fields);
    EXPECT_TRUE(rule.takes(fields)) << "no mask";
    set(rule.mask);
    EXPECT_FALSE(rule.takes(fields));
    EXPECT_TRUE(rule.takes(rule.value));
  };
  check([](FrameFields& f) { f.destination.bytes[5] ^= 0x80; });
  check([](FrameFields& f) { f.source.bytes[0] ^= 0x01; });
  check([](FrameFields& f) { f.ether_type ^= 0x0100; });
  check([](FrameFields& f) { f.vlan_tag ^= 0x0064; });
  check([](FrameFields& f) { f.is_tagged ^= 1; });
  check([](FrameFields& f) { f.ip_version ^= 2; });
  check([](FrameFields& f) { f.ip_source[15] ^= 1; });
  check([](FrameFields& f) { f.ip_destination[3] ^= 1; });
  check([](FrameFields& f) { f.next_header ^= 1; });
  check([](FrameFields& f) { f.traffic_class ^= 1; });
  check([](FrameFields& f) { f.hop_limit ^= 1; });
  check([](FrameFields& f) { f.ipv4_flags ^= 2; });
  check([](FrameFields& f) { f.flow_label ^= 0x80000; });
  check([](FrameFields& f) { f.transport ^= 1; });
  check([](FrameFields& f) { f.source_port ^= 1; });
  check([](FrameFields& f) { f.destination_port ^= 0x8000; });
}

}  // namespace
}  // namespace verbena::engine
