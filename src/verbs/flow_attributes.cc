#include "verbs/flow_attributes.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <endian.h>
#include <infiniband/verbs.h>

namespace verbena::verbs {
namespace {

using engine::FlowKind;
using engine::FlowRule;
using wire::FrameFields;

using Bytes = std::span<const std::byte>;

constexpr std::uint32_t kFlowLabelMask = 0xfffff;
constexpr unsigned kMostSpecs = 10;  // as the kernel has it

tl::unexpected<Error> refuse(std::string sentence) {
  return failure(ErrorCode::kInvalidArgument, "ibv_create_flow: " + std::move(sentence), EINVAL);
}
tl::unexpected<Error> cannot(std::string sentence) {
  return failure(ErrorCode::kUnsupported, "ibv_create_flow: " + std::move(sentence), EOPNOTSUPP);
}

template <class T>
T read(Bytes from) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, from.data(), sizeof value);
  return value;
}

// Which layers a flow has named so far; each may be named once.
struct Layers {
  bool ethernet = false;
  bool ip = false;
  bool transport = false;
  bool drop = false;
};

// What a kind of specification is. `read` puts it into the rule.
struct SpecRow {
  std::uint32_t type;
  std::string_view name;
  std::size_t size;
  bool Layers::*layer;
  Status (*read)(Bytes spec, FlowRule& rule);
};

// --- the specifications, each as value and mask alike

void take(const ibv_flow_eth_filter& filter, FrameFields& fields) noexcept {
  std::copy(std::begin(filter.dst_mac), std::end(filter.dst_mac), fields.destination.bytes.begin());
  std::copy(std::begin(filter.src_mac), std::end(filter.src_mac), fields.source.bytes.begin());
  fields.ether_type = be16toh(filter.ether_type);
  fields.vlan_tag = be16toh(filter.vlan_tag);
}

template <class Filter>
void take_ipv4(const Filter& filter, FrameFields& fields) noexcept {
  std::memcpy(fields.ip_source.data(), &filter.src_ip, sizeof filter.src_ip);
  std::memcpy(fields.ip_destination.data(), &filter.dst_ip, sizeof filter.dst_ip);
}
void take(const ibv_flow_ipv4_filter& filter, FrameFields& fields) noexcept {
  take_ipv4(filter, fields);
}
void take(const ibv_flow_ipv4_ext_filter& filter, FrameFields& fields) noexcept {
  take_ipv4(filter, fields);
  fields.next_header = filter.proto;
  fields.traffic_class = filter.tos;
  fields.hop_limit = filter.ttl;
  fields.ipv4_flags = filter.flags;
}
void take(const ibv_flow_ipv6_filter& filter, FrameFields& fields) noexcept {
  std::copy(std::begin(filter.src_ip), std::end(filter.src_ip), fields.ip_source.begin());
  std::copy(std::begin(filter.dst_ip), std::end(filter.dst_ip), fields.ip_destination.begin());
  fields.flow_label = be32toh(filter.flow_label);
  fields.next_header = filter.next_hdr;
  fields.traffic_class = filter.traffic_class;
  fields.hop_limit = filter.hop_limit;
}
void take(const ibv_flow_tcp_udp_filter& filter, FrameFields& fields) noexcept {
  fields.destination_port = be16toh(filter.dst_port);
  fields.source_port = be16toh(filter.src_port);
}

template <class Spec>
void take_both(Bytes bytes, FlowRule& rule) noexcept {
  const auto spec = read<Spec>(bytes);
  take(spec.val, rule.value);
  take(spec.mask, rule.mask);
}

Status read_ethernet(Bytes spec, FlowRule& rule) {
  take_both<ibv_flow_spec_eth>(spec, rule);
  if (rule.mask.vlan_tag != 0) rule.value.is_tagged = rule.mask.is_tagged = 1;
  return {};
}

void be_ip(std::uint8_t version, FlowRule& rule) noexcept {
  rule.value.ip_version = version;
  rule.mask.ip_version = 0xff;
}

template <class Spec>
Status read_ipv4(Bytes spec, FlowRule& rule) {
  take_both<Spec>(spec, rule);
  be_ip(4, rule);
  return {};
}

Status read_ipv6(Bytes spec, FlowRule& rule) {
  take_both<ibv_flow_spec_ipv6>(spec, rule);
  be_ip(6, rule);
  if (((rule.value.flow_label | rule.mask.flow_label) & ~kFlowLabelMask) == 0) return {};
  return refuse("the flow label of an IPv6 specification has more than 20 bits");
}

template <std::uint8_t Protocol>
Status read_transport(Bytes spec, FlowRule& rule) {
  take_both<ibv_flow_spec_tcp_udp>(spec, rule);
  rule.value.transport = Protocol;
  rule.mask.transport = 0xff;
  return {};
}

Status read_drop(Bytes /*spec*/, FlowRule& rule) {
  rule.drops = true;
  return {};
}

constexpr std::array<SpecRow, 7> kSpecs{{
    {IBV_FLOW_SPEC_ETH, "ETH", sizeof(ibv_flow_spec_eth), &Layers::ethernet, read_ethernet},
    {IBV_FLOW_SPEC_IPV4, "IPV4", sizeof(ibv_flow_spec_ipv4), &Layers::ip, read_ipv4<ibv_flow_spec_ipv4>},
    {IBV_FLOW_SPEC_IPV4_EXT, "IPV4_EXT", sizeof(ibv_flow_spec_ipv4_ext), &Layers::ip,
     read_ipv4<ibv_flow_spec_ipv4_ext>},
    {IBV_FLOW_SPEC_IPV6, "IPV6", sizeof(ibv_flow_spec_ipv6), &Layers::ip, read_ipv6},
    {IBV_FLOW_SPEC_TCP, "TCP", sizeof(ibv_flow_spec_tcp_udp), &Layers::transport, read_transport<wire::kProtocolTcp>},
    {IBV_FLOW_SPEC_UDP, "UDP", sizeof(ibv_flow_spec_tcp_udp), &Layers::transport, read_transport<wire::kProtocolUdp>},
    {IBV_FLOW_SPEC_ACTION_DROP, "ACTION_DROP", sizeof(ibv_flow_spec_action_drop), &Layers::drop, read_drop},
}};

// Those that verbs defines and this device does not have.
constexpr std::array<std::pair<std::uint32_t, std::string_view>, 7> kAbsent{{
    {IBV_FLOW_SPEC_ESP, "ESP"},
    {IBV_FLOW_SPEC_VXLAN_TUNNEL, "VXLAN_TUNNEL"},
    {IBV_FLOW_SPEC_GRE, "GRE"},
    {IBV_FLOW_SPEC_MPLS, "MPLS"},
    {IBV_FLOW_SPEC_ACTION_TAG, "ACTION_TAG"},
    {IBV_FLOW_SPEC_ACTION_HANDLE, "ACTION_HANDLE"},
    {IBV_FLOW_SPEC_ACTION_COUNT, "ACTION_COUNT"},
}};

tl::unexpected<Error> refuse_type(std::uint32_t type) {
  const std::uint32_t outer = type & ~std::uint32_t{IBV_FLOW_SPEC_INNER};
  const auto absent =
      std::find_if(kAbsent.begin(), kAbsent.end(), [outer](const auto& row) { return row.first == outer; });
  const auto row =
      std::find_if(kSpecs.begin(), kSpecs.end(), [outer](const SpecRow& one) { return one.type == outer; });
  if (absent != kAbsent.end()) {
    return cannot("specifications of type " + std::string(absent->second) +
                  " are not offered; there are ETH, IPV4, IPV4_EXT, IPV6, TCP, UDP and ACTION_DROP");
  }
  if (row != kSpecs.end()) return cannot("headers inside a tunnel (IBV_FLOW_SPEC_INNER) are not offered");
  return refuse("a specification has type " + std::to_string(type) + ", which verbs does not define");
}

// Every specification begins with these.
struct SpecHead {
  static constexpr std::size_t kSize = sizeof(std::uint32_t) + sizeof(std::uint16_t);

  std::uint32_t type;
  std::uint16_t size;
};

SpecHead read_head(Bytes from) noexcept {
  return {read<std::uint32_t>(from), read<std::uint16_t>(from.subspan(sizeof(std::uint32_t)))};
}

// The row of a type; nullptr where it is not offered.
const SpecRow* find_row(std::uint32_t type) noexcept {
  const auto row = std::find_if(kSpecs.begin(), kSpecs.end(), [type](const SpecRow& one) { return one.type == type; });
  return row == kSpecs.end() ? nullptr : &*row;
}

// Reads the one at the front and takes it off.
Status read_spec(Bytes& rest, Layers& layers, FlowRule& rule) {
  if (rest.size() < SpecHead::kSize) return refuse("num_of_specs names more specifications than `size` holds");
  const SpecHead head = read_head(rest);
  const SpecRow* const row = find_row(head.type);
  if (row == nullptr) return refuse_type(head.type);
  const std::string name(row->name);
  if (head.size != row->size) {
    return refuse("the specification " + name + " has size " + std::to_string(head.size) + ", and must have " +
                  std::to_string(row->size));
  }
  if (rest.size() < row->size) return refuse("`size` ends within the specification " + name);
  if (std::exchange(layers.*row->layer, true)) {
    return refuse("the specification " + name + " is of a layer that another one has named");
  }
  auto done = row->read(rest.first(row->size), rule);
  rest = rest.subspan(row->size);
  return done;
}

// A rule that no frame can meet is a mistake.
Status check_together(const FlowRule& rule) {
  const auto type_of = [](unsigned version) { return version == 4 ? wire::kEtherTypeIpv4 : wire::kEtherTypeIpv6; };
  if (rule.mask.ip_version != 0 &&
      ((rule.value.ether_type ^ type_of(rule.value.ip_version)) & rule.mask.ether_type) != 0) {
    return refuse("the ETH specification has another ether_type than IPv" + std::to_string(rule.value.ip_version) +
                  ", whose header is specified too");
  }
  if (rule.mask.transport != 0 && ((rule.value.next_header ^ rule.value.transport) & rule.mask.next_header) != 0 &&
      rule.value.ip_version == 4) {
    return refuse("the IPV4_EXT specification has another protocol than the one whose ports are specified");
  }
  return {};
}

// `type` is what stands in the attributes, which may be no enumerator.
Status read_kind(const ibv_flow_attr& attributes, std::uint32_t type, FlowRule& rule) {
  if (type > IBV_FLOW_ATTR_SNIFFER) return refuse("type " + std::to_string(type) + " is none of ibv_flow_attr_type");
  rule.kind = static_cast<FlowKind>(type);
  rule.priority = attributes.priority;
  rule.port = attributes.port;
  const std::uint32_t flags = attributes.flags;
  if ((flags & ~std::uint32_t{IBV_FLOW_ATTR_FLAGS_DONT_TRAP | IBV_FLOW_ATTR_FLAGS_EGRESS}) != 0) {
    return refuse("flags " + std::to_string(flags) + " has a bit that verbs does not define");
  }
  if ((flags & IBV_FLOW_ATTR_FLAGS_EGRESS) != 0) return cannot("flows of what is sent (EGRESS) are not offered");
  rule.passes_on = (flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP) != 0;
  if (rule.kind == FlowKind::kNormal) return {};
  if (rule.passes_on) return refuse("IBV_FLOW_ATTR_FLAGS_DONT_TRAP is for flows of type NORMAL");
  if (attributes.num_of_specs != 0) {
    return refuse("a flow of type " + std::to_string(type) + " takes no specifications, and has " +
                  std::to_string(attributes.num_of_specs) + "; those are for type NORMAL");
  }
  return {};
}

}  // namespace

std::size_t size_of_flow(const ibv_flow_attr& attributes) noexcept {
  if (attributes.size > sizeof attributes) return attributes.size;
  const auto* const begin = reinterpret_cast<const std::byte*>(&attributes);
  std::size_t size = sizeof attributes;
  for (unsigned i = 0; i < std::min<unsigned>(attributes.num_of_specs, kMostSpecs); ++i) {
    const SpecHead head = read_head({begin + size, SpecHead::kSize});
    const SpecRow* const row = find_row(head.type);
    if (row == nullptr || row->size != head.size) return size + SpecHead::kSize;
    size += head.size;
  }
  return size;
}

Result<engine::FlowRule> parse_flow(Bytes bytes) {
  if (bytes.size() < sizeof(ibv_flow_attr)) {
    return refuse("size " + std::to_string(bytes.size()) + " is less than that of ibv_flow_attr, " +
                  std::to_string(sizeof(ibv_flow_attr)));
  }
  const auto attributes = read<ibv_flow_attr>(bytes);
  if (attributes.comp_mask != 0) return refuse("comp_mask must be 0");
  FlowRule rule;
  const auto type = read<std::uint32_t>(bytes.subspan(offsetof(ibv_flow_attr, type)));
  if (auto done = read_kind(attributes, type, rule); !done) return tl::make_unexpected(done.error());
  if (attributes.num_of_specs > kMostSpecs) {
    return refuse("num_of_specs " + std::to_string(attributes.num_of_specs) + " is above " +
                  std::to_string(kMostSpecs));
  }
  Layers layers;
  Bytes rest = bytes.subspan(sizeof(ibv_flow_attr));
  for (unsigned i = 0; i < attributes.num_of_specs; ++i) {
    if (auto done = read_spec(rest, layers, rule); !done) return tl::make_unexpected(done.error());
  }
  if (rule.drops && rule.passes_on) return refuse("ACTION_DROP and IBV_FLOW_ATTR_FLAGS_DONT_TRAP exclude each other");
  if (auto fits = check_together(rule); !fits) return tl::make_unexpected(fits.error());
  return rule;
}

}  // namespace verbena::verbs
