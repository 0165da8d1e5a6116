// The invariant CRC at the end of every RoCEv2 packet (InfiniBand Architecture volume 1, section 7.8.1 and annex A17).
//
// CRC-32 of Ethernet over eight 0xFF bytes (in place of the LRH), the IP header, the UDP header, and everything from
// the BTH to the pad; with all ones in place of what a router may change: IPv4 TOS, TTL and checksum; IPv6 traffic
// class, flow label and hop limit; UDP checksum; BTH byte 4. It stands on the wire least significant byte first.
//
// A plain UDP socket does not show the IPv4 ID and the DF flag of what it receives, and the ICRC covers both. But a CRC
// is affine over GF(2): the difference between the ICRC received and the one computed for ID 0 is the difference of the
// four header bytes that hold ID, flags and fragment offset, multiplied by a power of x that depends only on the
// length. x is invertible, so dividing by that power gives those four bytes, exactly and without a search. The packet
// is good if they differ from ours in nothing but ID and DF: 15 of 32 bits remain as the check ("residual").
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/packet.h"

namespace verbena::wire {

// `network_header` is the IP and UDP header: 28 bytes for IPv4, 48 for IPv6. `covered` is what stands between it and
// the ICRC, BTH to pad, in one piece or in parts of any size; parts are not copied beyond the first few bytes.
std::uint32_t compute_icrc(std::span<const std::byte> network_header, std::span<const std::byte> covered) noexcept;
std::uint32_t compute_icrc(std::span<const std::byte> network_header,
                           std::span<const std::span<const std::byte>> covered) noexcept;

void store_icrc(std::uint32_t icrc, std::span<std::byte, kIcrcSize> out) noexcept;
std::uint32_t load_icrc(std::span<const std::byte, kIcrcSize> bytes) noexcept;

// Of a packet on an InfiniBand link: `headers` is the LRH and, where there, the GRH, as InfinibandHeader makes them.
// The ICRC covers them too, with ones for the virtual lane and for the GRH's traffic class, flow label and hop limit.
std::uint32_t compute_infiniband_icrc(std::span<const std::byte> headers,
                                      std::span<const std::span<const std::byte>> covered) noexcept;
// `rest` is what follows the headers, and ends with the ICRC. False also where it is shorter than BTH and ICRC.
bool verify_infiniband_icrc(std::span<const std::byte> headers, std::span<const std::byte> rest) noexcept;

enum class IcrcStrength : std::uint8_t {
  kMismatch,  // damaged on the way, or badly built
  kExact,     // all 32 bits checked
  kResidual,  // an IPv4 ID and DF flag exist that explain it: 15 bits checked
};

struct IcrcCheck {
  IcrcStrength strength = IcrcStrength::kMismatch;
  // What the sender put into its IPv4 header, where strength is kResidual.
  std::uint16_t ipv4_id = 0;
  bool dont_fragment = true;

  constexpr bool is_good() const noexcept { return strength != IcrcStrength::kMismatch; }
};

// The header is known to the last bit: IPv6, or IPv4 from a capture. `udp_payload` ends with the ICRC.
// kExact or kMismatch; the latter also where `udp_payload` is shorter than BTH and ICRC.
IcrcCheck verify_icrc(std::span<const std::byte> network_header, std::span<const std::byte> udp_payload) noexcept;

// IPv4 from a plain UDP socket: `network_header` is what NetworkHeader makes (ID 0, DF set), and the sender may have
// had another ID or no DF. kExact where the header as given explains the ICRC.
IcrcCheck verify_icrc_of_unknown_id(std::span<const std::byte> network_header,
                                    std::span<const std::byte> udp_payload) noexcept;

}  // namespace verbena::wire
