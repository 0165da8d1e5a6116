// Who sent a datagram: reads the 40 bytes in front of a received UD payload.
//
// On RoCE v2 over IPv6, and on InfiniBand, they are a GRH as the IPv6 header has it. Over IPv4 the IP header stands in
// the last 20 of them and the first 20 are undefined: they may hold bytes of an earlier datagram, and a NIC may leave
// the IPv4 checksum zero. So the checksum alone decides nothing: version, header length, total length against the
// completion's byte count, protocol and addresses do, on both readings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "verbena/export.h"
#include "verbena/gid.h"
#include "verbena/result.h"

namespace verbena {

struct GrhView {
  Gid source;
  Gid destination;
  std::uint8_t traffic_class = 0;
  std::uint32_t flow_label = 0;  // 0 over IPv4
  std::uint8_t hop_limit = 0;    // what remained on arrival: never a policy for the reply
  bool ipv4 = false;
};

// `byte_len` as the completion gives it: payload + 40. `is_own` tells the addresses of the receiving port: where both
// readings hold, the one that was sent to this port is it.
// Errors: kInvalidArgument where it is neither reading.
VERBENA_API Result<GrhView> parse_grh(std::span<const std::byte, 40> grh, std::uint32_t byte_len,
                                      const std::function<bool(const Gid&)>& is_own = {});

}  // namespace verbena
