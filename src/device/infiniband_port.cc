#include "device/infiniband_port.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/setting_value.h"

namespace verbena::device {
namespace {

constexpr std::uint16_t kPkeyBase = 0x7fff;
constexpr std::uint64_t kMaxLmc = 7;
constexpr std::uint64_t kMaxServiceLevel = 15;

// Decimal, or hexadecimal with 0x.
std::optional<std::uint64_t> parse_number(std::string_view text, std::uint64_t most) {
  const bool is_hex = text.starts_with("0x");
  if (is_hex) text.remove_prefix(2);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, is_hex ? 16 : 10);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || number > most) return std::nullopt;
  return number;
}

// 16 hexadecimal digits, with or without 0x, or in groups as ibv_devinfo prints them.
std::optional<std::uint64_t> parse_guid(std::string_view text) {
  std::string digits(text.starts_with("0x") ? text.substr(2) : text);
  std::erase(digits, ':');
  const auto guid = digits.size() == 16 ? parse_number("0x" + digits, UINT64_MAX) : std::nullopt;
  return guid && *guid != 0 ? guid : std::nullopt;
}

// "fe80::", or 16 hexadecimal digits.
std::optional<std::uint64_t> parse_prefix(std::string_view text) {
  const auto gid = parse_gid(text);
  if (!gid) return parse_guid(text);
  std::uint64_t prefix = 0;
  for (std::size_t i = 0; i < 8; ++i) prefix = (prefix << 8) | gid->bytes[i];
  const bool rest_is_zero = std::all_of(gid->bytes.begin() + 8, gid->bytes.end(), [](auto byte) { return byte == 0; });
  return rest_is_zero && prefix != 0 && !gid->is_multicast() ? std::optional(prefix) : std::nullopt;
}

std::optional<std::vector<std::uint16_t>> parse_pkeys(std::string_view text) {
  std::vector<std::uint16_t> pkeys;
  while (true) {
    const auto plus = text.find('+');
    const auto pkey = parse_number(text.substr(0, plus), UINT16_MAX);
    if (!pkey || (*pkey & kPkeyBase) == 0 || pkeys.size() == InfinibandPort::kPkeyTableLength) return std::nullopt;
    pkeys.push_back(static_cast<std::uint16_t>(*pkey));
    if (plus == std::string_view::npos) return pkeys;
    text.remove_prefix(plus + 1);
  }
}

template <class Value, class Parsed>
Status put(std::string_view source, std::string_view key, std::string_view value, const std::optional<Parsed>& parsed,
           Value& into, std::string_view wanted) {
  if (!parsed) return wrong_part(source, fmt::format("{}={}", key, value), wanted);
  into = static_cast<Value>(*parsed);
  return {};
}

}  // namespace

Gid InfinibandPort::gid_with(std::uint64_t prefix) const noexcept {
  Gid gid;
  for (std::size_t i = 0; i < 8; ++i) {
    gid.bytes[i] = static_cast<std::uint8_t>(prefix >> (56 - 8 * i));
    gid.bytes[8 + i] = static_cast<std::uint8_t>(guid >> (56 - 8 * i));
  }
  return gid;
}

Status set_attribute(std::string_view source, std::string_view key, std::string_view value, InfinibandPort& port) {
  constexpr std::string_view kWantsLid = "is no unicast LID: write a number from 1 to 49151 (0xbfff)";
  const auto lid = parse_number(value, InfinibandPort::kLastUnicastLid);
  if (key == "lid") return put(source, key, value, lid && *lid != 0 ? lid : std::nullopt, port.lid, kWantsLid);
  if (key == "sm_lid") return put(source, key, value, lid && *lid != 0 ? lid : std::nullopt, port.sm_lid, kWantsLid);
  if (key == "lmc") return put(source, key, value, parse_number(value, kMaxLmc), port.lmc, "must be from 0 to 7");
  if (key == "sm_sl") {
    return put(source, key, value, parse_number(value, kMaxServiceLevel), port.sm_sl, "must be from 0 to 15");
  }
  if (key == "guid")
    return put(source, key, value, parse_guid(value), port.guid, "is no GUID of 16 hexadecimal digits");
  if (key == "subnet_prefix") {
    return put(source, key, value, parse_prefix(value), port.subnet_prefix,
               "is no subnet prefix: write fe80:: or 0xfe80000000000000");
  }
  if (key == "pkeys") {
    return put(source, key, value, parse_pkeys(value), port.pkeys,
               "is no list of P_Keys: write 0xffff+0x8001, up to 32, a full member with the bit 0x8000");
  }
  return wrong_part(source, fmt::format("{}={}", key, value),
                    "is not known: there are lid, lmc, sm_lid, sm_sl, guid, subnet_prefix and pkeys");
}

Status check(std::string_view source, const InfinibandPort& port) {
  const unsigned count = 1U << port.lmc;
  if (port.lid % count != 0) {
    return wrong_part(source, fmt::format("lid={}", port.lid),
                      fmt::format("is no multiple of {}, as lmc={} wants it", count, port.lmc));
  }
  if (port.lid + count - 1 > InfinibandPort::kLastUnicastLid) {
    return wrong_part(source, fmt::format("lid={}", port.lid),
                      fmt::format("with lmc={} goes beyond the last unicast LID, 49151", port.lmc));
  }
  return {};
}

}  // namespace verbena::device
