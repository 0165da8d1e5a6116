// Acknowledge Extended Transport Header: syndrome 8 | MSN 24 (InfiniBand Architecture volume 1, sections 9.3.5 and
// 9.7.5.2).
//
//   syndrome   bit 7 is 0; bits 6-5 say which kind; bits 4-0 belong to the kind:
//     00       ACK: credit code (credit.h)
//     01       RNR NAK: timer code (rnr_timer.h)
//     10       reserved
//     11       NAK: NakCode
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/field_reader.h"
#include "wire/field_writer.h"

namespace verbena::wire {

enum class SyndromeKind : std::uint8_t { kAck, kRnrNak, kReserved, kNak };

enum class NakCode : std::uint8_t {
  kPsnSequenceError = 0,
  kInvalidRequest = 1,
  kRemoteAccessError = 2,
  kRemoteOperationalError = 3,
  kInvalidRdRequest = 4,
};

class Syndrome {
 public:
  constexpr Syndrome() noexcept = default;
  constexpr explicit Syndrome(std::uint8_t value) noexcept : value_(value) {}

  static constexpr Syndrome ack(std::uint8_t credit_code) noexcept { return make(SyndromeKind::kAck, credit_code); }
  static constexpr Syndrome rnr_nak(std::uint8_t timer_code) noexcept {
    return make(SyndromeKind::kRnrNak, timer_code);
  }
  static constexpr Syndrome nak(NakCode code) noexcept {
    return make(SyndromeKind::kNak, static_cast<std::uint8_t>(code));
  }

  constexpr std::uint8_t value() const noexcept { return value_; }
  // kReserved also for what has bit 7 set and for a NAK code that is not in NakCode.
  constexpr SyndromeKind kind() const noexcept {
    if ((value_ & 0x80) != 0) return SyndromeKind::kReserved;
    const auto kind = static_cast<SyndromeKind>(value_ >> 5);
    if (kind == SyndromeKind::kNak && code() > static_cast<std::uint8_t>(NakCode::kInvalidRdRequest)) {
      return SyndromeKind::kReserved;
    }
    return kind;
  }
  // The lower five bits: a credit code, a timer code, or a NAK code.
  constexpr std::uint8_t code() const noexcept { return value_ & 0x1f; }
  // Requires: kind() == kNak.
  constexpr NakCode nak_code() const noexcept { return static_cast<NakCode>(code()); }

  friend constexpr bool operator==(Syndrome, Syndrome) noexcept = default;

 private:
  static constexpr Syndrome make(SyndromeKind kind, std::uint8_t code) noexcept {
    return Syndrome(static_cast<std::uint8_t>((static_cast<unsigned>(kind) << 5) | (code & 0x1fU)));
  }

  std::uint8_t value_ = 0;
};

struct Aeth {
  static constexpr std::size_t kSize = 4;

  Syndrome syndrome{};
  std::uint32_t msn = 0;  // message sequence number, 24 bits

  static constexpr Aeth decode(std::span<const std::byte, kSize> bytes) noexcept {
    FieldReader fields(bytes.data());
    Aeth header;
    header.syndrome = Syndrome(fields.u8());
    header.msn = fields.u24();
    return header;
  }

  constexpr void encode(std::span<std::byte, kSize> out) const noexcept {
    FieldWriter fields(out.data());
    fields.u8(syndrome.value());
    fields.u24(msn);
  }

  friend constexpr bool operator==(const Aeth&, const Aeth&) noexcept = default;
};

}  // namespace verbena::wire
