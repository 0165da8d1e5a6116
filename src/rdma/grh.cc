#include "verbena/grh.h"

#include <optional>

#include "base/byte_order.h"

namespace verbena {

namespace {

constexpr std::size_t kGrhBytes = 40;
constexpr std::size_t kIpv4At = 20;  // where the IPv4 header stands
constexpr std::size_t kIpv4Bytes = 20;
constexpr std::uint8_t kUdp = 17;
constexpr std::uint8_t kInfiniBandNextHeader = 0x1b;
constexpr std::uint32_t kUdpBytes = 8;
constexpr std::uint32_t kTransportBytes = 12 + 8 + 4;  // BTH, DETH, ICRC
constexpr std::uint32_t kMostSlack = 4 + 3;            // immediate data, padding

using Bytes = std::span<const std::byte, kGrhBytes>;

// `claimed` bytes of headers and payload fit a payload of `payload` bytes.
bool length_fits(std::uint32_t claimed, std::uint32_t payload, std::uint32_t headers) {
  const std::uint32_t least = payload + headers;
  return claimed >= least && claimed <= least + kMostSlack;
}

struct Reading {
  GrhView view;
  bool length_matches = false;
  bool checksum_valid = false;
};

bool checksum_is_valid(const std::byte* header) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < kIpv4Bytes; i += 2) sum += load_be16(header + i);
  while ((sum >> 16) != 0) sum = (sum & 0xffff) + (sum >> 16);
  return sum == 0xffff;
}

std::optional<Reading> read_ipv4(Bytes grh, std::uint32_t payload) {
  const std::byte* header = grh.data() + kIpv4At;
  constexpr std::uint8_t kVersion4FiveWords = 0x45;
  constexpr std::uint16_t kMoreFragmentsOrOffset = 0x3fff;
  if (load_be8(header) != kVersion4FiveWords || load_be8(header + 9) != kUdp) return std::nullopt;
  if ((load_be16(header + 6) & kMoreFragmentsOrOffset) != 0) return std::nullopt;
  Reading reading;
  reading.view.ipv4 = true;
  reading.view.traffic_class = load_be8(header + 1);
  reading.view.hop_limit = load_be8(header + 8);
  reading.view.source = Gid::from_ipv4(load_be32(header + 12));
  reading.view.destination = Gid::from_ipv4(load_be32(header + 16));
  reading.length_matches = length_fits(load_be16(header + 2), payload, kIpv4Bytes + kUdpBytes + kTransportBytes);
  reading.checksum_valid = checksum_is_valid(header);
  return reading;
}

std::optional<Reading> read_ipv6(Bytes grh, std::uint32_t payload) {
  const std::uint32_t first = load_be32(grh.data());
  const std::uint8_t next_header = load_be8(grh.data() + 6);
  if ((first >> 28) != 6 || (next_header != kUdp && next_header != kInfiniBandNextHeader)) return std::nullopt;
  Reading reading;
  reading.view.traffic_class = static_cast<std::uint8_t>(first >> 20);
  reading.view.flow_label = first & 0xfffff;
  reading.view.hop_limit = load_be8(grh.data() + 7);
  for (std::size_t i = 0; i < 16; ++i) {
    reading.view.source.bytes[i] = load_be8(grh.data() + 8 + i);
    reading.view.destination.bytes[i] = load_be8(grh.data() + 24 + i);
  }
  reading.length_matches =
      length_fits(load_be16(grh.data() + 4), payload, kTransportBytes + (next_header == kUdp ? kUdpBytes : 0));
  return reading;
}

// Both readings hold: bytes of an earlier datagram in front of an IPv4 header, or IPv6 addresses that look like one.
// Where nobody tells the own addresses the IPv4 header goes first if its length fits: bytes in front stay behind in
// every buffer that is used again, whatever the checksum field holds; addresses with a fitting version, length,
// fragment field and protocol at the right places are chance.
const Reading& likelier(const Reading& ipv4, const Reading& ipv6, const std::function<bool(const Gid&)>& is_own) {
  if (is_own) {
    const auto meant_for_us = [&](const Reading& reading) {
      return reading.view.destination.is_multicast() || is_own(reading.view.destination);
    };
    if (meant_for_us(ipv4) != meant_for_us(ipv6)) return meant_for_us(ipv4) ? ipv4 : ipv6;
  }
  if (ipv4.length_matches != ipv6.length_matches) return ipv4.length_matches ? ipv4 : ipv6;
  return ipv4.length_matches || ipv4.checksum_valid ? ipv4 : ipv6;
}

}  // namespace

Result<GrhView> parse_grh(std::span<const std::byte, 40> grh, std::uint32_t byte_len,
                          const std::function<bool(const Gid&)>& is_own) {
  if (byte_len < kGrhBytes) {
    return failure(ErrorCode::kInvalidArgument,
                   "a UD completion counts at least the 40 bytes in front of the payload; byte_len is " +
                       std::to_string(byte_len));
  }
  const std::uint32_t payload = byte_len - static_cast<std::uint32_t>(kGrhBytes);
  const std::optional<Reading> ipv4 = read_ipv4(grh, payload);
  const std::optional<Reading> ipv6 = read_ipv6(grh, payload);
  if (ipv4 && ipv6) return likelier(*ipv4, *ipv6, is_own).view;
  if (ipv4) return ipv4->view;
  if (ipv6) return ipv6->view;
  return failure(ErrorCode::kInvalidArgument,
                 "the 40 bytes in front of the payload are neither an IPv4 nor an IPv6 header of a RoCE datagram; the "
                 "completion must have IBV_WC_GRH set");
}

}  // namespace verbena
