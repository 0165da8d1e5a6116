#include "verbs/flow_attributes.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <endian.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

namespace verbena::verbs {
namespace {

using engine::FlowKind;
using engine::FlowRule;

// Attributes with their specifications behind them, as a program lays them down.
class Flow {
 public:
  explicit Flow(ibv_flow_attr_type type = IBV_FLOW_ATTR_NORMAL) {
    attributes.type = type;
    attributes.port = 1;
  }
  template <class Spec>
  Flow& add(Spec spec, ibv_flow_spec_type type) {
    spec.type = type;
    spec.size = sizeof spec;
    const auto* const bytes = reinterpret_cast<const std::byte*>(&spec);
    specs.insert(specs.end(), bytes, bytes + sizeof spec);
    ++attributes.num_of_specs;
    return *this;
  }
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> all(sizeof attributes);
    std::memcpy(all.data(), &attributes, sizeof attributes);
    all.insert(all.end(), specs.begin(), specs.end());
    return all;
  }
  Result<FlowRule> parse() const { return parse_flow(bytes()); }
  int error() const {
    const auto rule = parse();
    return rule ? 0 : rule.error().system_errno;
  }

  ibv_flow_attr attributes{};
  std::vector<std::byte> specs;
};

ibv_flow_spec_eth ethernet(std::uint16_t type = 0) {
  ibv_flow_spec_eth spec{};
  constexpr std::array<std::uint8_t, 6> kMac{2, 0, 0, 0, 0, 9};
  std::memcpy(spec.val.dst_mac, kMac.data(), kMac.size());
  std::memset(spec.mask.dst_mac, 0xff, kMac.size());
  spec.val.ether_type = htobe16(type);
  spec.mask.ether_type = type == 0 ? 0 : 0xffff;
  return spec;
}

TEST(FlowAttributes, EveryFieldFindsItsPlace) {
  ibv_flow_spec_eth eth = ethernet(0x0800);
  eth.val.vlan_tag = htobe16(0x6064);
  eth.mask.vlan_tag = htobe16(0x0fff);
  ibv_flow_spec_ipv4_ext ip{};
  ip.val = {.src_ip = htobe32(0x0a090001), .dst_ip = htobe32(0x0a090002), .proto = 17, .tos = 8, .ttl = 64, .flags = 2};
  ip.mask = {.src_ip = UINT32_MAX, .dst_ip = htobe32(0xffffff00), .proto = 255, .tos = 252, .ttl = 0, .flags = 2};
  ibv_flow_spec_tcp_udp udp{};
  udp.val = {.dst_port = htobe16(4791), .src_port = htobe16(50000)};
  udp.mask = {.dst_port = 0xffff, .src_port = 0};
  Flow flow;
  flow.attributes.priority = 7;
  flow.attributes.port = 2;
  flow.attributes.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
  flow.add(eth, IBV_FLOW_SPEC_ETH).add(ip, IBV_FLOW_SPEC_IPV4_EXT).add(udp, IBV_FLOW_SPEC_UDP);
  const auto rule = flow.parse();
  ASSERT_TRUE(rule) << rule.error().message;
  EXPECT_EQ(rule->kind, FlowKind::kNormal);
  EXPECT_EQ(rule->priority, 7);
  EXPECT_EQ(rule->port, 2);
  EXPECT_TRUE(rule->passes_on);
  EXPECT_FALSE(rule->drops);
  EXPECT_EQ(rule->value.destination, (wire::MacAddress{{2, 0, 0, 0, 0, 9}}));
  EXPECT_EQ(rule->value.ether_type, 0x0800);
  EXPECT_EQ(rule->value.vlan_tag, 0x6064);
  EXPECT_EQ(rule->mask.vlan_tag, 0x0fff);
  EXPECT_EQ(rule->mask.is_tagged, 1);
  EXPECT_EQ(rule->value.ip_version, 4);
  EXPECT_EQ(rule->value.ip_source[0], 10);
  EXPECT_EQ(rule->mask.ip_destination[2], 0xff);
  EXPECT_EQ(rule->mask.ip_destination[3], 0);
  EXPECT_EQ(rule->value.next_header, 17);
  EXPECT_EQ(rule->mask.traffic_class, 252);
  EXPECT_EQ(rule->value.ipv4_flags, wire::kIpv4DontFragment);
  EXPECT_EQ(rule->value.transport, wire::kProtocolUdp);
  EXPECT_EQ(rule->value.destination_port, 4791);
  EXPECT_EQ(rule->mask.destination_port, 0xffff);
  EXPECT_EQ(rule->mask.source_port, 0);
}

TEST(FlowAttributes, Ipv6FindsItsPlace) {
  ibv_flow_spec_ipv6 ip{};
  ip.val.src_ip[0] = ip.mask.src_ip[0] = 0xfd;
  ip.val.dst_ip[15] = 2;
  ip.val.flow_label = htobe32(0x12345);
  ip.mask.flow_label = htobe32(0xfffff);
  ip.val.next_hdr = 6;
  ip.val.hop_limit = 63;
  ip.val.traffic_class = 0xb8;
  const auto rule = Flow().add(ip, IBV_FLOW_SPEC_IPV6).parse();
  ASSERT_TRUE(rule) << rule.error().message;
  EXPECT_EQ(rule->value.ip_version, 6);
  EXPECT_EQ(rule->value.ip_source[0], 0xfd);
  EXPECT_EQ(rule->value.ip_destination[15], 2);
  EXPECT_EQ(rule->value.flow_label, 0x12345U);
  EXPECT_EQ(rule->mask.flow_label, 0xfffffU);
  EXPECT_EQ(rule->value.next_header, 6);
  EXPECT_EQ(rule->value.hop_limit, 63);
  EXPECT_EQ(rule->value.traffic_class, 0xb8);
}

TEST(FlowAttributes, EachKindIsTaken) {
  for (const auto type :
       {IBV_FLOW_ATTR_NORMAL, IBV_FLOW_ATTR_ALL_DEFAULT, IBV_FLOW_ATTR_MC_DEFAULT, IBV_FLOW_ATTR_SNIFFER}) {
    const auto rule = Flow(type).parse();
    ASSERT_TRUE(rule) << type << ": " << rule.error().message;
    EXPECT_EQ(static_cast<int>(rule->kind), static_cast<int>(type));
  }
  auto other = Flow().bytes();
  other[offsetof(ibv_flow_attr, type)] = std::byte{4};
  const auto rule = parse_flow(other);
  ASSERT_FALSE(rule);
  EXPECT_EQ(rule.error().system_errno, EINVAL);
}

TEST(FlowAttributes, AnActionDropDrops) {
  const auto rule =
      Flow().add(ethernet(), IBV_FLOW_SPEC_ETH).add(ibv_flow_spec_action_drop{}, IBV_FLOW_SPEC_ACTION_DROP).parse();
  ASSERT_TRUE(rule);
  EXPECT_TRUE(rule->drops);
}

TEST(FlowAttributes, EveryTruncationIsRefused) {
  ibv_flow_spec_ipv4 ip{};
  const Flow flow = Flow().add(ethernet(), IBV_FLOW_SPEC_ETH).add(ip, IBV_FLOW_SPEC_IPV4);
  const auto whole = flow.bytes();
  EXPECT_TRUE(parse_flow(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const auto rule = parse_flow(cut);
    ASSERT_FALSE(rule) << size;
    EXPECT_EQ(rule.error().system_errno, EINVAL) << size;
  }
  auto longer = whole;
  longer.resize(whole.size() + 8);
  EXPECT_TRUE(parse_flow(longer));  // what num_of_specs does not name is not looked at
}

TEST(FlowAttributes, ASizeThatSaysNothingIsFoundFromTheSpecifications) {
  const auto size_with = [](const Flow& flow, std::size_t size) {
    auto bytes = flow.bytes();
    const auto stated = static_cast<std::uint16_t>(size);
    std::memcpy(bytes.data() + offsetof(ibv_flow_attr, size), &stated, sizeof stated);
    return size_of_flow(*reinterpret_cast<const ibv_flow_attr*>(bytes.data()));
  };
  const Flow two = Flow().add(ethernet(), IBV_FLOW_SPEC_ETH).add(ibv_flow_spec_ipv4{}, IBV_FLOW_SPEC_IPV4);
  const std::size_t whole = two.bytes().size();
  EXPECT_EQ(size_with(two, 0), whole);
  EXPECT_EQ(size_with(two, sizeof(ibv_flow_attr)), whole);
  EXPECT_EQ(size_with(two, whole), whole);
  EXPECT_EQ(size_with(two, whole - 1), whole - 1);
  EXPECT_EQ(size_with(Flow(), 0), sizeof(ibv_flow_attr));

  // Up to the head of one that is malformed, which the parser then refuses.
  Flow wrong = Flow().add(ibv_flow_spec_eth{}, IBV_FLOW_SPEC_ETH).add(ibv_flow_spec_ipv4{}, IBV_FLOW_SPEC_IPV4);
  const std::uint16_t absurd = 0xffff;
  std::memcpy(wrong.specs.data() + 4, &absurd, sizeof absurd);
  EXPECT_EQ(size_with(wrong, 0), sizeof(ibv_flow_attr) + 6);
  EXPECT_EQ(parse_flow(std::span<const std::byte>(wrong.bytes()).first(sizeof(ibv_flow_attr) + 6)).error().system_errno,
            EINVAL);
}

TEST(FlowAttributes, AWrongSizeOfASpecificationIsRefusedAndNamed) {
  Flow flow = Flow().add(ethernet(), IBV_FLOW_SPEC_ETH);
  for (const std::uint16_t size : std::to_array<std::uint16_t>({0, 6, 39, 41, 0xffff})) {
    std::memcpy(flow.specs.data() + 4, &size, sizeof size);
    const auto rule = flow.parse();
    ASSERT_FALSE(rule);
    EXPECT_EQ(rule.error().system_errno, EINVAL);
    EXPECT_NE(rule.error().message.find("ETH has size " + std::to_string(size)), std::string::npos);
  }
}

TEST(FlowAttributes, ALayerIsNamedOnce) {
  EXPECT_EQ(Flow().add(ethernet(), IBV_FLOW_SPEC_ETH).add(ethernet(), IBV_FLOW_SPEC_ETH).error(), EINVAL);
  EXPECT_EQ(Flow().add(ibv_flow_spec_ipv4{}, IBV_FLOW_SPEC_IPV4).add(ibv_flow_spec_ipv6{}, IBV_FLOW_SPEC_IPV6).error(),
            EINVAL);
  EXPECT_EQ(
      Flow().add(ibv_flow_spec_tcp_udp{}, IBV_FLOW_SPEC_TCP).add(ibv_flow_spec_tcp_udp{}, IBV_FLOW_SPEC_UDP).error(),
      EINVAL);
}

TEST(FlowAttributes, WhatContradictsItselfIsRefused) {
  EXPECT_EQ(Flow().add(ethernet(0x86dd), IBV_FLOW_SPEC_ETH).add(ibv_flow_spec_ipv4{}, IBV_FLOW_SPEC_IPV4).error(),
            EINVAL);
  EXPECT_EQ(Flow().add(ethernet(0x0800), IBV_FLOW_SPEC_ETH).add(ibv_flow_spec_ipv4{}, IBV_FLOW_SPEC_IPV4).error(), 0);
  ibv_flow_spec_ipv4_ext tcp{};
  tcp.val.proto = 6;
  tcp.mask.proto = 0xff;
  EXPECT_EQ(Flow().add(tcp, IBV_FLOW_SPEC_IPV4_EXT).add(ibv_flow_spec_tcp_udp{}, IBV_FLOW_SPEC_UDP).error(), EINVAL);
  EXPECT_EQ(Flow().add(tcp, IBV_FLOW_SPEC_IPV4_EXT).add(ibv_flow_spec_tcp_udp{}, IBV_FLOW_SPEC_TCP).error(), 0);
  ibv_flow_spec_ipv6 label{};
  label.mask.flow_label = htobe32(0x100000);
  EXPECT_EQ(Flow().add(label, IBV_FLOW_SPEC_IPV6).error(), EINVAL);
}

TEST(FlowAttributes, SpecificationsBelongToNormalFlows) {
  EXPECT_EQ(Flow(IBV_FLOW_ATTR_SNIFFER).add(ethernet(), IBV_FLOW_SPEC_ETH).error(), EINVAL);
  EXPECT_EQ(Flow(IBV_FLOW_ATTR_ALL_DEFAULT).add(ethernet(), IBV_FLOW_SPEC_ETH).error(), EINVAL);
}

TEST(FlowAttributes, FlagsAreThoseThatAreOffered) {
  const auto with = [](std::uint32_t flags, ibv_flow_attr_type type = IBV_FLOW_ATTR_NORMAL) {
    Flow flow(type);
    flow.attributes.flags = flags;
    return flow.error();
  };
  EXPECT_EQ(with(IBV_FLOW_ATTR_FLAGS_DONT_TRAP), 0);
  EXPECT_EQ(with(IBV_FLOW_ATTR_FLAGS_DONT_TRAP, IBV_FLOW_ATTR_SNIFFER), EINVAL);
  EXPECT_EQ(with(IBV_FLOW_ATTR_FLAGS_EGRESS), EOPNOTSUPP);
  EXPECT_EQ(with(1), EINVAL);
  EXPECT_EQ(with(8), EINVAL);
  Flow both;
  both.attributes.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
  EXPECT_EQ(both.add(ibv_flow_spec_action_drop{}, IBV_FLOW_SPEC_ACTION_DROP).error(), EINVAL);
}

TEST(FlowAttributes, WhatIsNotOfferedIsToldFromWhatIsUnknown) {
  const auto with = [](std::uint32_t type) {
    Flow flow = Flow().add(ibv_flow_spec_eth{}, IBV_FLOW_SPEC_ETH);
    std::memcpy(flow.specs.data(), &type, sizeof type);
    return flow.error();
  };
  for (const unsigned type : {0x34U, 0x50U, 0x51U, 0x60U, 0x1000U, 0x1002U, 0x1003U}) {
    EXPECT_EQ(with(type), EOPNOTSUPP) << type;
  }
  EXPECT_EQ(with(IBV_FLOW_SPEC_INNER | IBV_FLOW_SPEC_ETH), EOPNOTSUPP);
  for (const unsigned type : {0U, 0x21U, 0x35U, 0x1004U, 0x80000000U}) EXPECT_EQ(with(type), EINVAL) << type;
}

TEST(FlowAttributes, TooManyAndAMaskOfTheFutureAreRefused) {
  Flow many;
  many.attributes.num_of_specs = 11;
  EXPECT_EQ(many.error(), EINVAL);
  Flow future;
  future.attributes.comp_mask = 1;
  EXPECT_EQ(future.error(), EINVAL);
}

}  // namespace
}  // namespace verbena::verbs
