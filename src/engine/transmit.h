// One packet that a queue pair wants sent: the parts of its UDP payload where they lie, and where it goes.
//
// Not copied: `parts` may point into `header`. Valid until the queue pair's on_transmitted(), rewind_transmit() or
// modify(). Made to be reused: a caller keeps a batch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/envelope.h"
#include "base/qpn.h"
#include "engine/limits.h"
#include "wire/opcode.h"

namespace verbena::engine {

struct Transmit {
  using ConstBytes = std::span<const std::byte>;
  // Headers, the payload's pieces, the pad, and one place more, for the ICRC that the caller may append.
  static constexpr std::size_t kMaxParts = kMaxSge + 3;

  Transmit() = default;
  Transmit(const Transmit&) = delete;
  Transmit& operator=(const Transmit&) = delete;

  const Envelope* envelope = nullptr;
  Qpn source_qpn;
  Qpn destination_qpn;  // its slot tells which process of the destination host; kMulticastQpn for a group
  std::uint32_t payload_size = 0;
  std::uint32_t size = 0;        // of all parts: the UDP payload without ICRC
  std::uint32_t part_count = 0;  // the first is the transport headers
  std::array<ConstBytes, kMaxParts> parts;
  std::array<std::byte, wire::kMaxHeaderSize> header;  // where the queue pair makes the headers for this packet alone

  std::span<const ConstBytes> list() const noexcept { return std::span(parts).first(part_count); }
};

}  // namespace verbena::engine
