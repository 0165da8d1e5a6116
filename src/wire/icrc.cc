#include "wire/icrc.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include <isa-l/crc.h>

#include "wire/field_reader.h"
#include "wire/infiniband_header.h"
#include "wire/network_header.h"

namespace verbena::wire {
namespace {

// The CRC of the eight 0xFF bytes that stand for the LRH. Like all values here it is the finished CRC, complement
// included: crc32_gzip_refl takes and returns it so.
constexpr std::uint32_t kSeed = 0x2144df1c;
constexpr std::uint32_t kPolynomial = 0xedb88320;  // bit-reflected: bit 31 is the coefficient of x^0

constexpr std::size_t kMaskedBthByte = 4;
constexpr std::size_t kUdpChecksumInUdp = 6;

std::uint32_t crc_over(std::uint32_t crc, std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return crc;
  return crc32_gzip_refl(crc, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

// Puts all ones where routers may write.
void mask_network_header(std::span<std::byte> header) noexcept {
  assert(header.size() == kIpv4Size + kUdpSize || header.size() == kIpv6Size + kUdpSize);
  constexpr std::byte kOnes{0xff};
  if (header.size() == kIpv4Size + kUdpSize) {
    for (const std::size_t masked : {1U, 8U, 10U, 11U}) header[masked] = kOnes;  // TOS, TTL, checksum
  } else {
    header[0] |= std::byte{0x0f};                                              // traffic class, flow label
    for (const std::size_t masked : {1U, 2U, 3U, 7U}) header[masked] = kOnes;  // the same, hop limit
  }
  const std::size_t checksum = header.size() - kUdpSize + kUdpChecksumInUdp;
  header[checksum] = header[checksum + 1] = kOnes;
}

void mask_infiniband_header(std::span<std::byte> header) noexcept {
  assert(header.size() == kLrhSize || header.size() == kMaxInfinibandHeaderSize);
  header[0] |= std::byte{0xf0};  // virtual lane
  if (header.size() == kLrhSize) return;
  header[kLrhSize] |= std::byte{0x0f};  // traffic class, flow label
  for (const std::size_t masked : {1U, 2U, 3U, 7U}) header[kLrhSize + masked] = std::byte{0xff};
}

// The masked headers and the first bytes of what follows, in one piece: one long CRC is faster than several short ones.
class Stage {
 public:
  // `mask` puts ones where the network may write.
  Stage(std::span<const std::byte> header, void (*mask)(std::span<std::byte>) noexcept, std::uint32_t seed) noexcept
      : bth_at_(header.size()), seed_(seed) {
    fill(header);
    mask(std::span(bytes_).first(size_));
  }

  // Takes bytes from the front of `part`; returns those that had no room.
  std::span<const std::byte> fill(std::span<const std::byte> part) noexcept {
    const auto fitting = part.first(std::min(part.size(), bytes_.size() - size_));
    if (!fitting.empty()) std::memcpy(bytes_.data() + size_, fitting.data(), fitting.size());
    size_ += fitting.size();
    return part.subspan(fitting.size());
  }

  std::uint32_t finished() noexcept {
    if (size_ > bth_at_ + kMaskedBthByte) bytes_[bth_at_ + kMaskedBthByte] = std::byte{0xff};
    return crc_over(seed_, std::span(bytes_).first(size_));
  }

 private:
  std::array<std::byte, 256> bytes_;
  std::size_t bth_at_;
  std::uint32_t seed_;
  std::size_t size_ = 0;
};

std::uint32_t crc_behind(Stage& stage, std::span<const std::span<const std::byte>> covered) noexcept {
  std::size_t next = 0;
  std::span<const std::byte> rest;  // of the part that met the end of the stage
  while (next < covered.size() && rest.empty()) rest = stage.fill(covered[next++]);
  std::uint32_t crc = crc_over(stage.finished(), rest);
  for (; next < covered.size(); ++next) crc = crc_over(crc, covered[next]);
  return crc;
}

// --- Dividing by a power of x ---

constexpr std::uint32_t times_x(std::uint32_t a) noexcept {
  return (a >> 1) ^ ((a & 1U) != 0 ? kPolynomial : 0);
}

constexpr std::uint32_t divided_by_x(std::uint32_t a) noexcept {
  return (a & 0x80000000U) != 0 ? ((a ^ kPolynomial) << 1) | 1U : a << 1;
}

// The product of two polynomials modulo the CRC's.
constexpr std::uint32_t product(std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t sum = 0;
  for (int bit = 31; bit >= 0; --bit) {
    sum ^= b & (0U - ((a >> bit) & 1U));
    b = times_x(b);
  }
  return sum;
}

constexpr int kDigits = 4;  // of a byte count, in base 16

// kInversePowers[d][n] = x^(-8 * n * 16^d): what undoes n * 16^d bytes.
constexpr std::array<std::array<std::uint32_t, 16>, kDigits> make_inverse_powers() noexcept {
  std::array<std::array<std::uint32_t, 16>, kDigits> powers{};
  std::uint32_t step = 0x80000000U;  // 1
  for (int bit = 0; bit < 8; ++bit) step = divided_by_x(step);
  for (auto& digit : powers) {
    digit[0] = 0x80000000U;
    for (std::size_t n = 1; n < digit.size(); ++n) digit[n] = product(digit[n - 1], step);
    step = product(digit.back(), step);
  }
  return powers;
}

constexpr auto kInversePowers = make_inverse_powers();

// Requires: byte_count < 16^kDigits.
std::uint32_t undo_bytes(std::uint32_t crc_difference, std::size_t byte_count) noexcept {
  for (const auto& digit : kInversePowers) {
    if ((byte_count & 0xf) != 0) crc_difference = product(crc_difference, digit[byte_count & 0xf]);
    byte_count >>= 4;
  }
  return crc_difference;
}

constexpr std::size_t kIpv4IdAt = 4;  // ID 16 | reserved 1 | DF 1 | MF 1 | fragment offset 13
constexpr std::uint16_t kDontFragment = 0x4000;
constexpr std::uint32_t kIdAndDontFragment = 0x0040ffff;  // in the CRC register: first byte lowest

std::uint32_t difference(std::span<const std::byte> network_header, std::span<const std::byte> udp_payload) noexcept {
  const auto covered = udp_payload.first(udp_payload.size() - kIcrcSize);
  return compute_icrc(network_header, covered) ^ load_icrc(udp_payload.last<kIcrcSize>());
}

}  // namespace

std::uint32_t compute_icrc(std::span<const std::byte> network_header, std::span<const std::byte> covered) noexcept {
  const std::span<const std::byte> parts[] = {covered};
  return compute_icrc(network_header, parts);
}

std::uint32_t compute_icrc(std::span<const std::byte> network_header,
                           std::span<const std::span<const std::byte>> covered) noexcept {
  Stage stage(network_header, mask_network_header, kSeed);
  return crc_behind(stage, covered);
}

std::uint32_t compute_infiniband_icrc(std::span<const std::byte> headers,
                                      std::span<const std::span<const std::byte>> covered) noexcept {
  Stage stage(headers, mask_infiniband_header, 0);
  return crc_behind(stage, covered);
}

bool verify_infiniband_icrc(std::span<const std::byte> headers, std::span<const std::byte> rest) noexcept {
  if (rest.size() < Bth::kSize + kIcrcSize) return false;
  const std::span<const std::byte> covered[] = {rest.first(rest.size() - kIcrcSize)};
  return compute_infiniband_icrc(headers, covered) == load_icrc(rest.last<kIcrcSize>());
}

void store_icrc(std::uint32_t icrc, std::span<std::byte, kIcrcSize> out) noexcept {
  for (auto& byte : out) {
    byte = static_cast<std::byte>(icrc);
    icrc >>= 8;
  }
}

std::uint32_t load_icrc(std::span<const std::byte, kIcrcSize> bytes) noexcept {
  std::uint32_t icrc = 0;
  for (std::size_t i = 0; i < kIcrcSize; ++i) icrc |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
  return icrc;
}

IcrcCheck verify_icrc(std::span<const std::byte> network_header, std::span<const std::byte> udp_payload) noexcept {
  const bool exact = udp_payload.size() >= Bth::kSize + kIcrcSize && difference(network_header, udp_payload) == 0;
  return {.strength = exact ? IcrcStrength::kExact : IcrcStrength::kMismatch};
}

IcrcCheck verify_icrc_of_unknown_id(std::span<const std::byte> network_header,
                                    std::span<const std::byte> udp_payload) noexcept {
  if (udp_payload.size() < Bth::kSize + kIcrcSize) return {};
  const std::uint32_t crc_difference = difference(network_header, udp_payload);
  if (crc_difference == 0) return {.strength = IcrcStrength::kExact};
  if (network_header.size() != kIpv4Size + kUdpSize) return {};

  // The CRC register holds the first of four bytes lowest, and each byte has moved on by all that came after it.
  const std::size_t bytes_since = network_header.size() - kIpv4IdAt + udp_payload.size() - kIcrcSize;
  const std::uint32_t header_difference = undo_bytes(crc_difference, bytes_since);
  if ((header_difference & ~kIdAndDontFragment) != 0) return {};
  std::array<std::byte, kIcrcSize> word{};
  store_icrc(header_difference, word);
  FieldReader ours(network_header.data() + kIpv4IdAt);
  FieldReader changed(word.data());
  IcrcCheck check{.strength = IcrcStrength::kResidual};
  check.ipv4_id = static_cast<std::uint16_t>(ours.u16() ^ changed.u16());
  check.dont_fragment = ((ours.u16() ^ changed.u16()) & kDontFragment) != 0;
  return check;
}

}  // namespace verbena::wire
