#include "ah/attributes.h"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "verbena/rate.h"

namespace verbena::ah {

namespace {

constexpr std::uint8_t kMostServiceLevel = 15;
constexpr std::uint8_t kMostPathBits = 127;
constexpr std::uint16_t kFirstMulticastLid = 0xc000;
constexpr std::uint16_t kPermissiveLid = 0xffff;
constexpr std::uint32_t kMostIndex = 255;  // ibv_global_route has eight bits for it
constexpr std::uint8_t kHighestRate = IBV_RATE_1200_GBPS;

tl::unexpected<Error> refuse(const Destination& destination, const std::string& why) {
  return failure(ErrorCode::kInvalidArgument, fmt::format("destination {}: {}", in_words(destination), why));
}

Status validate_ethernet(const Destination& destination) {
  if (destination.gid.is_zero()) {
    return refuse(destination,
                  "the GID is zero; on Ethernet (RoCE) it is the IP address of the peer, and there is no LID");
  }
  if (destination.lid != 0) {
    return refuse(destination, fmt::format("lid {} is set, but the port is Ethernet (RoCE), which has none; leave it 0",
                                           destination.lid));
  }
  if (destination.source_path_bits > kMostPathBits) return {};  // refused as such
  if (destination.source_path_bits != 0) {
    return refuse(destination, fmt::format("source path bits {} are set, but the port is Ethernet (RoCE), which has "
                                           "none; leave them 0, and spread by the flow label",
                                           destination.source_path_bits));
  }
  return {};
}

Status validate_infiniband(const Destination& destination, const PortFacts& facts) {
  if (destination.lid == 0) {
    return refuse(destination,
                  "the port is InfiniBand, which addresses by LID, and lid is 0; take it from the peer's "
                  "full address");
  }
  if (destination.lid == kPermissiveLid) {
    return refuse(destination,
                  "lid 65535 is the permissive LID, which only management datagrams are sent to; take "
                  "the peer's own from its full address");
  }
  if (destination.lid >= kFirstMulticastLid && destination.gid.is_zero()) {
    return refuse(destination, fmt::format("lid {} is one of multicast, where each datagram has a GRH, and the GID is "
                                           "zero; give the group's GID too",
                                           destination.lid));
  }
  if (facts.grh_required && destination.gid.is_zero()) {
    return refuse(destination, "this InfiniBand port demands a GRH, and the GID is zero; give the peer's GID too");
  }
  if (destination.netdev != 0) {
    return refuse(destination, fmt::format("netdev {} names a network interface, but the port is InfiniBand, whose "
                                           "fabric routes by LID; leave it 0",
                                           destination.netdev));
  }
  return {};
}

Status validate_place(const Destination& destination, const PortFacts& facts) {
  if (destination.port != 0 && destination.port != facts.port) {
    return refuse(destination, fmt::format("port {} is not this directory's port {}; use the directory of that port",
                                           destination.port, facts.port));
  }
  return facts.link_layer == LinkLayer::kEthernet ? validate_ethernet(destination)
                                                  : validate_infiniband(destination, facts);
}

// `reason` is taken from the choice.
Path path_of(SourceChoice& choice, bool ethernet, bool multicast) {
  Path path{
      .source = choice.entry, .gateway = {}, .netdev = 0, .has_next_hop = false, .reason = std::move(choice.reason)};
  if (!ethernet || multicast || choice.route.local) return path;
  path.has_next_hop = true;
  path.gateway = choice.route.gateway;
  path.netdev = choice.route.netdev != 0 ? choice.route.netdev : choice.entry.netdev;
  return path;
}

}  // namespace

std::string in_words(const Destination& destination) {
  const Destination standard;
  std::string text = destination.gid.is_zero() ? fmt::format("LID {}", destination.lid) : to_string(destination.gid);
  const auto add = [&](const char* name, unsigned value, unsigned usual) {
    if (value != usual) text += fmt::format(" {} {}", name, value);
  };
  if (!destination.gid.is_zero()) add("LID", destination.lid, standard.lid);
  if (!destination.source.is_zero()) text += " from " + to_string(destination.source);
  add("source path bits", destination.source_path_bits, standard.source_path_bits);
  add("netdev", destination.netdev, standard.netdev);
  add("traffic class", destination.traffic_class, standard.traffic_class);
  add("service level", destination.service_level, standard.service_level);
  add("flow label", destination.flow_label & kFlowLabelMask, standard.flow_label);
  add("hop limit", destination.hop_limit, standard.hop_limit);
  add("static rate", destination.static_rate, standard.static_rate);
  return text;
}

Status validate(const Destination& destination, const PortFacts& facts) {
  if (Status place = validate_place(destination, facts); !place) return place;
  if (destination.hop_limit == 0) {
    return refuse(destination, "hop limit 0 does not leave the host; use 64");
  }
  if (destination.service_level > kMostServiceLevel) {
    return refuse(destination,
                  fmt::format("service level {} is above {}", destination.service_level, kMostServiceLevel));
  }
  if (destination.source_path_bits > kMostPathBits) {
    return refuse(destination,
                  fmt::format("source path bits {} are above {}", destination.source_path_bits, kMostPathBits));
  }
  if (destination.static_rate > kHighestRate ||
      (destination.static_rate != IBV_RATE_MAX && !bits_per_second(static_cast<ibv_rate>(destination.static_rate)))) {
    return refuse(destination, fmt::format("static rate {} is no ibv_rate; use one of IBV_RATE_*, or 0 for the port's "
                                           "speed",
                                           destination.static_rate));
  }
  return {};
}

Result<Resolved> resolve(const Destination& destination, const PortFacts& facts, std::span<const GidEntry> table,
                         const RouteLookup& routes) {
  Resolved resolved;
  const bool global = !destination.gid.is_zero();
  if (global) {
    Result<SourceChoice> choice = choose_source(table,
                                                {.destination = destination.gid,
                                                 .port = facts.port,
                                                 .netdev = destination.netdev,
                                                 .source = destination.source},
                                                routes);
    if (!choice) return tl::make_unexpected(choice.error());
    if (choice->entry.index > kMostIndex) {
      return failure(ErrorCode::kUnsupported,
                     fmt::format("source GID {} stands at index {}, and an address handle can name 0 to {}",
                                 to_string(choice->entry.gid), choice->entry.index, kMostIndex));
    }
    resolved.path = path_of(*choice, facts.link_layer == LinkLayer::kEthernet, destination.gid.is_multicast());
  } else {
    resolved.path.reason = fmt::format("on port {}: within the subnet, without a GRH", facts.port);
  }
  resolved.key = key_of(destination, resolved.path.source, facts);
  resolved.hop = hop_of(destination, resolved.path);
  return resolved;
}

AhKey key_of(const Destination& destination, const GidEntry& source, const PortFacts& facts) {
  return {.domain = facts.domain,
          .destination = destination.gid,
          .source = source.gid,
          .source_type = source.type,
          .global = !destination.gid.is_zero(),
          .port = facts.port,
          .traffic_class = destination.traffic_class,
          .service_level = destination.service_level,
          .hop_limit = destination.hop_limit,
          .static_rate = destination.static_rate,
          .source_path_bits = destination.source_path_bits,
          .lid = destination.lid,
          .flow_label = destination.flow_label & kFlowLabelMask,
          .netdev = source.netdev};
}

ibv_ah_attr attributes_of(const Destination& destination, const GidEntry& source, const PortFacts& facts) {
  ibv_ah_attr attributes{};
  attributes.dlid = destination.lid;
  attributes.sl = destination.service_level;
  attributes.src_path_bits = destination.source_path_bits;
  attributes.static_rate = destination.static_rate;
  attributes.port_num = facts.port;
  if (destination.gid.is_zero()) return attributes;
  attributes.is_global = 1;
  std::memcpy(attributes.grh.dgid.raw, destination.gid.bytes.data(), sizeof attributes.grh.dgid.raw);
  attributes.grh.flow_label = destination.flow_label & kFlowLabelMask;
  attributes.grh.sgid_index = static_cast<std::uint8_t>(source.index);
  attributes.grh.hop_limit = destination.hop_limit;
  attributes.grh.traffic_class = destination.traffic_class;
  return attributes;
}

std::vector<std::string> changes_between(const ibv_ah_attr& wanted, const ibv_ah_attr& made) {
  std::vector<std::string> changes;
  const auto compare = [&changes](const char* field, const auto& asked, const auto& got) {
    if (asked != got) changes.push_back(fmt::format("{}: {} asked for, {} made", field, asked, got));
  };
  const auto gid = [](const ibv_gid& raw) {
    Gid of;
    std::memcpy(of.bytes.data(), raw.raw, sizeof raw.raw);
    return to_string(of);
  };
  compare("port_num", wanted.port_num, made.port_num);
  compare("dlid", wanted.dlid, made.dlid);
  compare("sl", wanted.sl, made.sl);
  compare("src_path_bits", wanted.src_path_bits, made.src_path_bits);
  compare("static_rate", wanted.static_rate, made.static_rate);
  compare("is_global", wanted.is_global, made.is_global);
  compare("grh.dgid", gid(wanted.grh.dgid), gid(made.grh.dgid));
  compare("grh.flow_label", wanted.grh.flow_label, made.grh.flow_label);
  compare("grh.sgid_index", wanted.grh.sgid_index, made.grh.sgid_index);
  compare("grh.hop_limit", wanted.grh.hop_limit, made.grh.hop_limit);
  compare("grh.traffic_class", wanted.grh.traffic_class, made.grh.traffic_class);
  return changes;
}

NextHop hop_of(const Destination& destination, const Path& path) {
  if (!path.has_next_hop) return {};
  return {.address = path.gateway.is_zero() ? destination.gid : path.gateway, .netdev = path.netdev};
}

std::string explain(const Destination& destination, const Path& path) {
  const bool by_lid = destination.gid.is_zero();
  std::string place = by_lid ? fmt::format("LID {}", destination.lid) : to_string(destination.gid);
  if (!by_lid && destination.lid != 0) place += fmt::format(" at LID {}", destination.lid);
  if (destination.source_path_bits != 0)
    place += fmt::format(" with source path bits {}", destination.source_path_bits);
  return fmt::format("to {} {}", place, path.reason);
}

std::string advice_for_refusal(const Destination& destination, const PortFacts& facts, ibv_context* context) {
  if (facts.link_layer == LinkLayer::kEthernet) {
    return "the device refuses one of these values: are both ends RoCE v2 and of the same address family, and is the "
           "source GID still there?";
  }
  const Result<PortView> port = query_port(context, facts.port);
  const unsigned most = port ? (1U << port->lmc) - 1 : kMostPathBits;
  if (destination.source_path_bits > most) {
    return fmt::format("source path bits {} are beyond the port's LMC {}, by which it has {} LID{} from {} on: use {}",
                       destination.source_path_bits, port->lmc, most + 1, most == 0 ? "" : "s", port->lid,
                       most == 0 ? "0" : fmt::format("0 to {}", most));
  }
  return fmt::format("the device refuses one of these values: is LID {} one of the subnet's{}?", destination.lid,
                     destination.gid.is_zero() ? "" : ", and is the source GID still there");
}

}  // namespace verbena::ah
