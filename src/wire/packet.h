// A RoCEv2 packet, from the BTH on: the headers as values and the payload as a view.
//
//   | BTH | extension headers by opcode | payload | pad 0-3 | ICRC 4 |
//
// Between processes of one host the same bytes go without the ICRC; the pad stays. Here `has_icrc` says which.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/drop.h"
#include "wire/aeth.h"
#include "wire/atomic_ack_eth.h"
#include "wire/atomic_eth.h"
#include "wire/bth.h"
#include "wire/deth.h"
#include "wire/feth.h"
#include "wire/ieth.h"
#include "wire/imm_dt.h"
#include "wire/opcode.h"
#include "wire/reth.h"
#include "wire/selective_eth.h"
#include "wire/xrceth.h"

namespace verbena::wire {

inline constexpr std::size_t kIcrcSize = 4;
inline constexpr std::size_t kMaxPad = 3;

struct Packet {
  Bth bth{};
  // Only those that the opcode calls for mean something; row_of(bth.opcode).headers tells.
  Xrceth xrceth{};
  Deth deth{};
  Feth feth{};
  Reth reth{};
  AtomicEth atomic_eth{};
  Aeth aeth{};
  AtomicAckEth atomic_ack_eth{};
  ImmDt imm_dt{};
  Ieth ieth{};
  SelectiveEth selective_eth{};
  std::span<const std::byte> payload{};  // without pad and ICRC
};

// Bytes of zero that follow a payload, to bring it to a multiple of four.
constexpr std::uint8_t pad_count(std::size_t payload_size) noexcept {
  return static_cast<std::uint8_t>((0U - payload_size) & 0x3U);
}

inline constexpr std::array<std::byte, kMaxPad> kPadBytes{};

// The pad of a payload, as the part that a gathering sender puts behind it.
constexpr std::span<const std::byte> pad_bytes(std::size_t payload_size) noexcept {
  return std::span(kPadBytes).first(pad_count(payload_size));
}

// The whole UDP payload: headers of `opcode`, payload, pad, and the ICRC where has_icrc. Requires: a known opcode.
std::size_t udp_payload_size(Opcode opcode, std::size_t payload_size, bool has_icrc) noexcept;

// Reads a packet. `packet.payload` points into `udp_payload`. Does not check the ICRC (icrc.h does).
//
// Returns kNone, or the first of:
//   kTruncated            shorter than a BTH (and ICRC), or than the headers of its opcode
//   kBadTransportVersion  TVer other than 0
//   kUnknownOpcode        not in the table of opcode.h
//   kBadPadCount          more pad than bytes, or not the pad that makes the payload a multiple of four
// and then `packet` holds what had been read, which means nothing. A payload behind headers of an opcode that calls for
// none is not refused here, nor is its length checked: that belongs to the queue pair.
Drop decode_packet(std::span<const std::byte> udp_payload, bool has_icrc, Packet& packet) noexcept;

// Writes the BTH and the extension headers for a payload of `payload_size` bytes, from which the pad count is computed
// (bth.pad_count is not looked at). Returns the number of bytes written; 0 where the opcode is unknown or `out` too
// short; kMaxHeaderSize is always enough.
std::size_t encode_headers(const Packet& packet, std::size_t payload_size, std::span<std::byte> out) noexcept;

// The same, for the payload that the packet points to.
std::size_t encode_headers(const Packet& packet, std::span<std::byte> out) noexcept;

}  // namespace verbena::wire
