// The headers in front of the BTH on an InfiniBand link: the local route header, and behind it, where LNH says so, the
// global route header (InfiniBand Architecture volume 1, sections 7.7 and 8.3).
//
//   LRH   byte 0     VL 4 | LVer 4 (0)
//         byte 1     SL 4 | reserved 2 | LNH 2: 2 for a BTH next, 3 for a GRH next
//         bytes 2-3  DLID
//         bytes 4-5  reserved 5 | PktLen 11: 4-byte words from the LRH to the ICRC, both included
//         bytes 6-7  SLID
//   GRH   bytes 0-3  IPVer 4 (6) | TClass 8 | FlowLabel 20
//         bytes 4-5  PayLen: bytes behind the GRH, ICRC included
//         byte 6     NxtHdr 0x1b
//         byte 7     HopLmt
//         bytes 8-39 SGID, DGID
//
// Verbena carries such packets in UDP (kInfinibandUdpPort) and in shared memory, from the LRH to the ICRC. There is no
// VCRC: the checksum of the carrier's link stands for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/drop.h"
#include "base/envelope.h"

namespace verbena::wire {

inline constexpr std::size_t kLrhSize = 8;
inline constexpr std::size_t kInfinibandGrhSize = 40;
inline constexpr std::size_t kMaxInfinibandHeaderSize = kLrhSize + kInfinibandGrhSize;
inline constexpr std::uint8_t kNextHeaderIba = 0x1b;
inline constexpr std::uint16_t kInfinibandUdpPort = 4797;  // of the encapsulation; nothing outside of Verbena knows it
inline constexpr std::uint16_t kFirstMulticastLid = 0xc000;
inline constexpr std::uint16_t kPermissiveLid = 0xffff;

constexpr bool is_multicast_lid(std::uint16_t lid) noexcept {
  return lid >= kFirstMulticastLid && lid != kPermissiveLid;
}

// LRH and, where the envelope has one, GRH in one piece.
class InfinibandHeader {
 public:
  // `size` counts everything behind these headers, the ICRC included, there or not. Requires: envelope.is_infiniband(),
  // `size` a multiple of four and below 8000.
  InfinibandHeader(const Envelope& envelope, std::size_t size) noexcept;

  std::span<const std::byte> bytes() const noexcept { return std::span(bytes_).first(size_); }

 private:
  std::array<std::byte, kMaxInfinibandHeaderSize> bytes_;
  std::size_t size_;
};

struct InfinibandHeaderView {
  Envelope envelope{};
  std::size_t size = 0;  // of the headers
};

// Reads the headers of `packet`. kTruncated where it is shorter than they say, or has another length than PktLen and
// PayLen; kBadTransportVersion for another link version; kUnknownOpcode where neither BTH nor GRH follows; kUnknownLid
// for LID 0. `has_icrc` false: the last four bytes that the lengths count are not there.
Drop decode_infiniband_header(std::span<const std::byte> packet, bool has_icrc, InfinibandHeaderView& view) noexcept;

// As it stands in front of a received datagram. `size` as above.
void write_infiniband_grh(const Envelope& envelope, std::size_t size,
                          std::span<std::byte, kInfinibandGrhSize> out) noexcept;

}  // namespace verbena::wire
