#include "rdma/destination_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <net/if.h>

#include "verbena/rate.h"
#include "verbena/resolve.h"

namespace verbena {

namespace {

using rdma::DestinationText;

constexpr std::uint32_t kMostFlowLabel = 0xfffff;
constexpr std::uint32_t kMostUnicastLid = 0xbfff;
constexpr std::uint32_t kMostDscp = 63;
constexpr unsigned kDscpShift = 2;

struct Pair {
  std::string_view key;
  std::string_view value;
};

tl::unexpected<Error> refuse(std::string_view text, const std::string& why) {
  return failure(ErrorCode::kInvalidArgument, fmt::format("destination \"{}\": {}", text, why));
}

bool is_unspecified(const Gid& gid) {
  return gid.is_zero() || gid == Gid::from_ipv4(0);
}

// "key VALUE is ..." for errors, without the text around it.
Result<std::uint32_t> read_number(const Pair& pair, std::uint32_t least, std::uint32_t most) {
  const bool hexadecimal = pair.value.starts_with("0x") || pair.value.starts_with("0X");
  const std::string_view digits = hexadecimal ? pair.value.substr(2) : pair.value;
  std::uint32_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, number, hexadecimal ? 16 : 10);
  if (digits.empty() || error != std::errc{} || stopped != end || number < least || number > most) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("{}={} is no number from {} to {}{}", pair.key, pair.value, least, most,
                               most > 255 ? fmt::format(" (0x{:x})", most) : ""));
  }
  return number;
}

Result<std::uint32_t> read_interface(std::string_view value) {
  const bool is_text = value.find('\0') == std::string_view::npos;
  if (const unsigned index = is_text ? ::if_nametoindex(std::string(value).c_str()) : 0; index != 0) return index;
  if (!value.empty() && std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return read_number({"netdev", value}, 1, std::numeric_limits<std::int32_t>::max());
  }
  return failure(
      ErrorCode::kNotFound,
      fmt::format("there is no interface \"{}\" in this network namespace (ip link shows those there are)", value));
}

Result<Gid> read_gid(const Pair& pair) {
  const std::optional<Gid> gid = parse_gid(pair.value);
  if (gid && !is_unspecified(*gid)) return *gid;
  return failure(ErrorCode::kInvalidArgument,
                 fmt::format("{}={} is {}", pair.key, pair.value, gid ? "the zero address" : "no address or GID"));
}

// Puts `read`'s value into `field`.
template <class Field, class Value>
Status put(Field& field, Result<Value> read) {
  if (!read) return tl::make_unexpected(read.error());
  field = static_cast<Field>(*read);
  return {};
}

Status put_dscp(std::uint8_t& traffic_class, Result<std::uint32_t> read) {
  if (!read) return tl::make_unexpected(read.error());
  traffic_class = static_cast<std::uint8_t>(*read << kDscpShift);
  return {};
}

struct Key {
  std::string_view name;
  Status (*take)(const Pair&, Destination&);
};

constexpr std::array<Key, 12> kKeys{{
    {"lid", [](const Pair& p, Destination& d) { return put(d.lid, read_number(p, 1, kMostUnicastLid)); }},
    {"gid", [](const Pair& p, Destination& d) { return put(d.gid, read_gid(p)); }},
    {"src", [](const Pair& p, Destination& d) { return put(d.source, read_gid(p)); }},
    {"netdev", [](const Pair& p, Destination& d) { return put(d.netdev, read_interface(p.value)); }},
    {"port", [](const Pair& p, Destination& d) { return put(d.port, read_number(p, 1, 255)); }},
    {"tc", [](const Pair& p, Destination& d) { return put(d.traffic_class, read_number(p, 0, 255)); }},
    {"dscp", [](const Pair& p, Destination& d) { return put_dscp(d.traffic_class, read_number(p, 0, kMostDscp)); }},
    {"sl", [](const Pair& p, Destination& d) { return put(d.service_level, read_number(p, 0, 15)); }},
    {"flow", [](const Pair& p, Destination& d) { return put(d.flow_label, read_number(p, 0, kMostFlowLabel)); }},
    {"hops", [](const Pair& p, Destination& d) { return put(d.hop_limit, read_number(p, 1, 255)); }},
    {"rate", [](const Pair& p, Destination& d) { return put(d.static_rate, parse_rate(p.value)); }},
    {"pathbits", [](const Pair& p, Destination& d) { return put(d.source_path_bits, read_number(p, 0, 127)); }},
}};

std::string key_names() {
  std::string text;
  for (const Key& key : kKeys) text += fmt::format("{}{}", text.empty() ? "" : ", ", key.name);
  return text;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

bool could_be_host_name(std::string_view text) {
  constexpr std::size_t kLongest = 253;
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_';
  };
  return !text.empty() && text.size() <= kLongest && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), allowed) &&
         // "10.0.0.300" is a mistake, and no name of a host: the last label of one is not a number
         text.find_first_not_of("0123456789.") != std::string_view::npos;
}

Status read_place(std::string_view place, DestinationText& into) {
  const std::size_t percent = place.find('%');
  const std::string_view address = place.substr(0, percent);
  if (const std::optional<Gid> gid = parse_gid(address)) {
    into.destination.gid = *gid;
    if (is_unspecified(*gid)) {
      return failure(ErrorCode::kInvalidArgument,
                     "the zero address is no destination: it is what a port without an "
                     "address has; give the peer's interface one");
    }
    if (percent == std::string_view::npos) return {};
    return put(into.destination.netdev, read_interface(place.substr(percent + 1)));
  }
  if (!could_be_host_name(place)) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("\"{}\" is no IPv4 or IPv6 address, GID or host name", place));
  }
  into.host_name = place;
  return {};
}

Status take_pair(std::string_view part, std::vector<std::string_view>& seen, Destination& destination) {
  const std::size_t equals = part.find('=');
  const Pair pair{part.substr(0, equals), equals == std::string_view::npos ? "" : part.substr(equals + 1)};
  const auto key = std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& k) { return k.name == pair.key; });
  if (equals == std::string_view::npos || key == kKeys.end()) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("\"{}\" is no key=value that a destination has; the keys are {}", part, key_names()));
  }
  const auto excludes = [&](std::string_view other) {
    return other == pair.key || (other == "tc" && pair.key == "dscp") || (other == "dscp" && pair.key == "tc");
  };
  if (const auto other = std::find_if(seen.begin(), seen.end(), excludes); other != seen.end()) {
    return failure(ErrorCode::kInvalidArgument, fmt::format("{} is given after {}; give one", pair.key, *other));
  }
  seen.push_back(pair.key);
  return key->take(pair, destination);
}

Status read_parts(const std::vector<std::string_view>& parts, DestinationText& into) {
  std::vector<std::string_view> seen;
  const bool by_key = parts.front().find('=') != std::string_view::npos;
  if (!by_key) {
    if (Status place = read_place(parts.front(), into); !place) return place;
    seen.push_back("gid");
    if (into.destination.netdev != 0) seen.push_back("netdev");
  }
  for (std::size_t i = by_key ? 0 : 1; i < parts.size(); ++i) {
    if (Status taken = take_pair(parts[i], seen, into.destination); !taken) return taken;
  }
  if (into.host_name.empty() && into.destination.gid.is_zero() && into.destination.lid == 0) {
    return failure(ErrorCode::kInvalidArgument,
                   "it names no place: begin with an address or a host name, or give lid=");
  }
  return {};
}

}  // namespace

Result<DestinationText> rdma::read_destination(std::string_view text) {
  DestinationText read;
  if (Status status = read_parts(split(text), read); !status) {
    return failure(status.error().code, fmt::format("destination \"{}\": {}", text, status.error().message));
  }
  return read;
}

Result<Destination> parse_destination(std::string_view text) {
  Result<DestinationText> read = rdma::read_destination(text);
  if (!read) return tl::make_unexpected(read.error());
  if (!read->host_name.empty()) {
    return refuse(text, fmt::format("\"{}\" is a host name and no address; its addresses have to be asked for "
                                    "(resolve_destination)",
                                    read->host_name));
  }
  return read->destination;
}

std::string to_text(const Destination& destination) {
  const Destination usual;
  std::string text = destination.gid.is_zero() ? fmt::format("lid={}", destination.lid) : to_string(destination.gid);
  const auto add = [&](const char* key, std::uint32_t value, std::uint32_t standard) {
    if (value != standard) text += fmt::format(",{}={}", key, value);
  };
  if (!destination.gid.is_zero()) add("lid", destination.lid, usual.lid);
  if (!destination.source.is_zero()) text += ",src=" + to_string(destination.source);
  add("netdev", destination.netdev, usual.netdev);
  add("port", destination.port, usual.port);
  if (destination.traffic_class != 0) text += fmt::format(",tc=0x{:02x}", destination.traffic_class);
  add("sl", destination.service_level, usual.service_level);
  add("flow", destination.flow_label & kMostFlowLabel, usual.flow_label);
  add("hops", destination.hop_limit, usual.hop_limit);
  const bool is_rate = destination.static_rate <= IBV_RATE_1200_GBPS;  // the type holds few values above the last
  if (const auto speed = bits_per_second(is_rate ? static_cast<ibv_rate>(destination.static_rate) : IBV_RATE_MAX)) {
    text += fmt::format(",rate={:g}g", static_cast<double>(*speed) / 1e9);
  }
  add("pathbits", destination.source_path_bits, usual.source_path_bits);
  return text;
}

Destination with(Destination destination, const ServiceClass& service) noexcept {
  destination.traffic_class = service.traffic_class;
  destination.service_level = service.service_level;
  destination.hop_limit = service.hop_limit;
  destination.static_rate = service.static_rate;
  return destination;
}

}  // namespace verbena
