#include "rdma/attribute_check.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

#include <fmt/format.h>
#include <infiniband/verbs.h>

#include "rdma/doctor_finding.h"
#include "rdma/transition_check.h"
#include "verbena/rate.h"

namespace verbena::rdma {
namespace {

enum class Kind { kNumber, kGid, kWord };

struct Name {
  std::string_view name;
  Kind kind;
  std::string_view also;  // other spellings, separated by spaces
};

constexpr std::array<Name, 25> kNames{{
    {"dgid", Kind::kGid, "grh.dgid gid"},
    {"sgid", Kind::kGid, "source source_gid"},
    {"gid_index", Kind::kNumber, "sgid_index grh.sgid_index index"},
    {"is_global", Kind::kNumber, "ah_attr.is_global"},
    {"hop_limit", Kind::kNumber, "grh.hop_limit"},
    {"traffic_class", Kind::kNumber, "grh.traffic_class tclass"},
    {"flow_label", Kind::kNumber, "grh.flow_label"},
    {"dlid", Kind::kNumber, "lid ah_attr.dlid"},
    {"sl", Kind::kNumber, "service_level ah_attr.sl"},
    {"src_path_bits", Kind::kNumber, "path_bits"},
    {"static_rate", Kind::kNumber, "rate"},
    {"port", Kind::kNumber, "port_num ah_attr.port_num"},
    {"link_layer", Kind::kWord, ""},
    {"device", Kind::kWord, "dev"},
    {"qkey", Kind::kNumber, "q_key remote_qkey"},
    {"path_mtu", Kind::kNumber, "mtu"},
    {"access", Kind::kWord, "access_flags qp_access_flags"},
    {"length", Kind::kNumber, "size"},
    {"cqe", Kind::kNumber, "entries"},
    {"max_send_wr", Kind::kNumber, "max_recv_wr"},
    {"qpn", Kind::kNumber, "dest_qp_num remote_qpn"},
    {"from", Kind::kWord, "cur_qp_state"},
    {"to", Kind::kWord, "qp_state"},
    {"mask", Kind::kWord, "attr_mask"},
    {"type", Kind::kWord, "qp_type"},
}};

const Name* find_name(std::string_view word) {
  for (const Name& name : kNames) {
    if (name.name == word) return &name;
    std::string_view also = name.also;
    while (!also.empty()) {
      const std::string_view spelling = also.substr(0, also.find(' '));
      if (spelling == word) return &name;
      also.remove_prefix(std::min(spelling.size() + 1, also.size()));
    }
  }
  return nullptr;
}

std::optional<std::uint64_t> number_in(std::string_view word) {
  const bool hex = word.substr(0, 2) == "0x";
  if (hex) word.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, hex ? 16 : 10);
  if (word.empty() || error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

// The attributes with readers; what is not there is nothing.
class View {
 public:
  View(const Attributes& attributes, const DeviceFacts* device) : attributes_(attributes), device_(device) {}

  std::optional<std::uint64_t> number(const std::string& name) const {
    const auto found = attributes_.find(name);
    return found == attributes_.end() ? std::nullopt : number_in(found->second);
  }
  std::optional<Gid> gid(const std::string& name) const {
    const auto found = attributes_.find(name);
    return found == attributes_.end() ? std::nullopt : parse_gid(found->second);
  }
  std::string word(const std::string& name) const {
    const auto found = attributes_.find(name);
    return found == attributes_.end() ? std::string() : found->second;
  }
  std::uint8_t port() const { return static_cast<std::uint8_t>(number("port").value_or(1)); }
  const DeviceFacts* device() const { return device_; }
  const PortFacts* port_facts() const { return device_ == nullptr ? nullptr : find_port(*device_, port()); }

  // As said, else as the device's port has it.
  std::optional<LinkLayer> link_layer() const {
    const std::string said = word("link_layer");
    if (said == "ethernet" || said == "Ethernet" || said == "roce") return LinkLayer::kEthernet;
    if (said == "infiniband" || said == "InfiniBand" || said == "ib") return LinkLayer::kInfiniBand;
    if (const PortFacts* facts = port_facts()) return facts->view.link_layer;
    return std::nullopt;
  }
  // What stands at gid_index, where the device's table has it.
  const GidEntry* source() const {
    const auto index = number("gid_index");
    if (device_ == nullptr || !index) return nullptr;
    for (const GidEntry& entry : device_->gids) {
      if (entry.port == port() && entry.index == *index) return &entry;
    }
    return nullptr;
  }

 private:
  const Attributes& attributes_;
  const DeviceFacts* device_;
};

using Findings = std::vector<AttributeFinding>;
using Verdict = AttributeVerdict;

void check_gids(const View& view, Findings& findings) {
  const auto dgid = view.gid("dgid");
  if (dgid && dgid->is_zero())
    findings.push_back({"dgid", Verdict::kWrong, "the zero GID is nobody's: the peer had no address when it told it"});
  const auto index = view.number("gid_index");
  if (index && *index > 255) findings.push_back({"gid_index", Verdict::kWrong, "sgid_index is one byte: 0 to 255"});
  const GidEntry* source = view.source();
  if (index && *index <= 255 && view.device() != nullptr && source == nullptr) {
    findings.push_back(
        {"gid_index", Verdict::kWrong,
         fmt::format("place {} of {} port {} is empty (verbena gids)", *index, view.device()->name, view.port())});
  }
  const std::optional<Gid> from = source != nullptr ? std::optional(source->gid) : view.gid("sgid");
  if (!from || !dgid || dgid->is_zero()) return;
  const bool fits = std::string_view(family_word(*from)) == family_word(*dgid) || dgid->is_multicast();
  const std::string pair = fmt::format("the destination {} is {}, the source {} is {}", address_text(*dgid),
                                       family_word(*dgid), address_text(*from), family_word(*from));
  findings.push_back({source != nullptr ? "gid_index" : "sgid", fits ? Verdict::kFits : Verdict::kWrong,
                      fits ? pair : pair + ": they must be of one family, and link-local goes with link-local only"});
  if (source != nullptr && source->type == GidType::kRoceV1) {
    findings.push_back({"gid_index", Verdict::kSuspicious,
                        "it is of RoCE v1: a peer with RoCE v2 does not hear it, and no router passes it on"});
  }
}

void check_global(const View& view, Findings& findings) {
  const auto global = view.number("is_global");
  const auto layer = view.link_layer();
  if (!global) return;
  if (*global == 0 && layer == LinkLayer::kEthernet) {
    findings.push_back({"is_global", Verdict::kWrong,
                        "0 on an Ethernet port: RoCE needs a GRH for each address; set it to 1 and fill grh"});
  } else if (*global == 0 && view.port_facts() != nullptr && view.port_facts()->view.grh_required) {
    findings.push_back({"is_global", Verdict::kWrong, "0, and this port demands a GRH (IBV_QPF_GRH_REQUIRED)"});
  } else if (*global == 0 && view.gid("dgid")) {
    findings.push_back({"is_global", Verdict::kSuspicious, "0, so the GID that stands beside it is ignored"});
  } else {
    findings.push_back({"is_global", Verdict::kFits, *global == 0 ? "0: by LID" : "1: with a GRH"});
  }
}

void check_lids(const View& view, Findings& findings) {
  const auto dlid = view.number("dlid");
  if (!dlid) return;
  constexpr std::uint64_t kLastUnicast = 0xbfff;
  constexpr std::uint64_t kPermissive = 0xffff;
  if (*dlid > kPermissive) {
    findings.push_back({"dlid", Verdict::kWrong, "a LID has 16 bits: 1 to 0xbfff, and 0xc000 to 0xfffe of multicast"});
    return;
  }
  if (view.link_layer() == LinkLayer::kInfiniBand) {
    if (*dlid == 0) {
      findings.push_back({"dlid", Verdict::kWrong, "0 on an InfiniBand port: the LID says where to"});
    } else if (*dlid == kPermissive) {
      findings.push_back(
          {"dlid", Verdict::kWrong,
           "0xffff is the permissive LID, which only management datagrams are sent to: take the peer's"});
    } else if (*dlid > kLastUnicast && view.number("is_global") == std::uint64_t{0}) {
      findings.push_back(
          {"dlid", Verdict::kWrong, "0xc000 and above are multicast, where each datagram has a GRH: set is_global"});
    } else {
      findings.push_back({"dlid", *dlid <= kLastUnicast ? Verdict::kFits : Verdict::kSuspicious,
                          *dlid <= kLastUnicast ? "a unicast LID" : "0xc000 and above are multicast"});
    }
  } else if (view.link_layer() == LinkLayer::kEthernet) {
    findings.push_back({"dlid", *dlid == 0 ? Verdict::kFits : Verdict::kSuspicious,
                        "RoCE has no LIDs: it is ignored, or decides the UDP source port"});
  }
}

void check_path_bits(const View& view, Findings& findings) {
  const auto bits = view.number("src_path_bits");
  if (!bits || *bits > 127) return;  // judged by its range
  if (view.link_layer() == LinkLayer::kEthernet) {
    if (*bits != 0)
      findings.push_back({"src_path_bits", Verdict::kSuspicious, "RoCE has no LIDs, and so none of them"});
    return;
  }
  const PortFacts* port = view.port_facts();
  if (port == nullptr) {
    if (*bits != 0) {
      findings.push_back({"src_path_bits", Verdict::kUnknown,
                          "they must be less than 2 to the power of the port's LMC (ibv_devinfo); no device to compare "
                          "with"});
    }
    return;
  }
  const unsigned lids = 1U << port->view.lmc;
  const std::string has = fmt::format("by its LMC {} the port has {}", port->view.lmc, counted(lids, "LID", "LIDs"));
  if (*bits < lids) {
    findings.push_back({"src_path_bits", Verdict::kFits, has});
  } else {
    findings.push_back({"src_path_bits", Verdict::kWrong,
                        lids == 1 ? has + ": only 0 fits" : fmt::format("{}: 0 to {} fit", has, lids - 1)});
  }
}

struct Range {
  const char* name;
  std::uint64_t most;
  const char* why;
};

void check_ranges(const View& view, Findings& findings) {
  static constexpr std::array<Range, 6> kRanges{{
      {"sl", 15, "a service level is 0 to 15"},
      {"src_path_bits", 127, "path bits are 0 to 127"},
      {"traffic_class", 255, "one byte: DSCP * 4 + ECN"},
      {"flow_label", 0xfffff, "20 bits: mask it with 0xfffff"},
      {"qpn", 0xffffff, "24 bits"},
      {"hop_limit", 255, "one byte"},
  }};
  for (const Range& range : kRanges) {
    const auto value = view.number(range.name);
    if (value && *value > range.most) findings.push_back({range.name, Verdict::kWrong, range.why});
  }
  const auto hops = view.number("hop_limit");
  if (hops && *hops == 0)
    findings.push_back({"hop_limit", Verdict::kWrong, "0: the first that looks drops it; use 64"});
  if (hops && *hops == 1) findings.push_back({"hop_limit", Verdict::kSuspicious, "1 cannot cross a router; use 64"});
  const auto qkey = view.number("qkey");
  if (qkey && *qkey > 0xffffffff) findings.push_back({"qkey", Verdict::kWrong, "32 bits"});
  if (qkey && *qkey >= 0x80000000 && *qkey <= 0xffffffff) {
    findings.push_back(
        {"qkey", Verdict::kSuspicious,
         "its highest bit means \"the queue pair's own\" in a work request, and needs CAP_NET_RAW in ibv_modify_qp"});
  }
  const auto rate = view.number("static_rate");
  const bool named = rate && *rate <= static_cast<unsigned>(IBV_RATE_1200_GBPS);  // else not to be cast to one
  if (rate && *rate != 0 && (!named || !bits_per_second(static_cast<ibv_rate>(*rate)))) {
    findings.push_back({"static_rate", Verdict::kWrong, "no value of enum ibv_rate; 0 is as fast as the port"});
  }
}

void check_port_number(const View& view, Findings& findings) {
  const auto port = view.number("port");
  if (!port) return;
  if (*port == 0 || *port > 255) {
    findings.push_back({"port", Verdict::kWrong, "ports count from 1"});
  } else if (view.device() != nullptr && view.port_facts() == nullptr) {
    findings.push_back(
        {"port", Verdict::kWrong,
         fmt::format("{} has {}", view.device()->name, counted(view.device()->ports.size(), "port", "ports"))});
  } else if (view.port_facts() != nullptr && !view.port_facts()->view.active) {
    findings.push_back({"port", Verdict::kWrong, fmt::format("it is {}", view.port_facts()->view.state)});
  } else {
    findings.push_back({"port", view.device() == nullptr ? Verdict::kUnknown : Verdict::kFits,
                        view.device() == nullptr ? "no device to compare with" : "it is active"});
  }
}

void check_mtu(const View& view, Findings& findings) {
  const auto mtu = view.number("path_mtu");
  if (!mtu) return;
  const std::uint64_t bytes = *mtu >= 1 && *mtu <= 5 ? 128ULL << *mtu : *mtu;
  const bool known = bytes == 256 || bytes == 512 || bytes == 1024 || bytes == 2048 || bytes == 4096;
  if (!known) {
    findings.push_back({"path_mtu", Verdict::kWrong, "256, 512, 1024, 2048 or 4096 (as enum ibv_mtu: 1 to 5)"});
  } else if (view.port_facts() != nullptr && bytes > view.port_facts()->view.active_mtu) {
    findings.push_back({"path_mtu", Verdict::kWrong,
                        fmt::format("{}, and this port carries {}", bytes, view.port_facts()->view.active_mtu)});
  } else {
    findings.push_back({"path_mtu", Verdict::kFits, std::to_string(bytes)});
  }
}

void check_memory(const View& view, Findings& findings) {
  const std::string access = view.word("access");
  const bool writes =
      access.find("REMOTE_WRITE") != std::string::npos || access.find("REMOTE_ATOMIC") != std::string::npos;
  if (writes && access.find("LOCAL_WRITE") == std::string::npos) {
    findings.push_back({"access", Verdict::kWrong, "REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE beside them"});
  }
  const auto length = view.number("length");
  if (length && *length == 0) findings.push_back({"length", Verdict::kWrong, "0 bytes cannot be registered"});
}

}  // namespace

std::string canonical_attribute(std::string_view name) {
  const Name* known = find_name(name);
  return known == nullptr ? std::string() : std::string(known->name);
}

std::vector<std::string> known_attributes() {
  std::vector<std::string> names;
  for (const Name& name : kNames) names.emplace_back(name.name);
  return names;
}

Result<Attributes> parse_attributes(const std::vector<std::string>& words) {
  Attributes attributes;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) {
      return failure(ErrorCode::kInvalidArgument,
                     fmt::format("\"{}\" is not understood: attributes are written NAME=VALUE", word));
    }
    const Name* name = find_name(std::string_view(word).substr(0, equals));
    if (name == nullptr) {
      return failure(ErrorCode::kInvalidArgument,
                     fmt::format("there is no attribute \"{}\"; known are: {}", word.substr(0, equals),
                                 fmt::join(known_attributes(), ", ")));
    }
    const std::string value = word.substr(equals + 1);
    if (name->kind == Kind::kNumber && !number_in(value)) {
      return failure(ErrorCode::kInvalidArgument,
                     fmt::format("{}={}: not a number (decimal, or 0x...)", name->name, value));
    }
    if (name->kind == Kind::kGid && !parse_gid(value)) {
      return failure(ErrorCode::kInvalidArgument,
                     fmt::format("{}={}: neither an IP address nor a GID", name->name, value));
    }
    if (value.empty()) return failure(ErrorCode::kInvalidArgument, fmt::format("{}= has no value", name->name));
    attributes[std::string(name->name)] = value;
  }
  return attributes;
}

std::vector<AttributeFinding> check_attributes(const Attributes& attributes, const DeviceFacts* device) {
  const View view(attributes, device);
  Findings findings;
  check_port_number(view, findings);
  check_global(view, findings);
  check_gids(view, findings);
  check_lids(view, findings);
  check_path_bits(view, findings);
  check_ranges(view, findings);
  check_mtu(view, findings);
  check_memory(view, findings);
  for (AttributeFinding& finding : check_transition(attributes)) findings.push_back(std::move(finding));
  const auto limit = [&](const char* name, std::uint64_t most, const char* what) {
    const auto value = view.number(name);
    if (value && most != 0 && *value > most)
      findings.push_back({name, Verdict::kWrong, fmt::format("{} is {}", what, most)});
    if (value && *value == 0) findings.push_back({name, Verdict::kSuspicious, "0 entries"});
  };
  limit("cqe", device == nullptr ? 0 : device->max_cqe, "max_cqe of the device");
  limit("max_send_wr", device == nullptr ? 0 : device->max_qp_wr, "max_qp_wr of the device");
  return findings;
}

}  // namespace verbena::rdma
