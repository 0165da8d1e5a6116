// Base Transport Header: twelve bytes in front of every packet (InfiniBand Architecture volume 1, section 9.2).
//
//   byte 0      opcode
//   byte 1      SE 0x80 | MigReq 0x40 | PadCnt 0x30 | TVer 0x0f
//   bytes 2-3   P_Key
//   bytes 4-7   FECN bit 31 | BECN bit 30 | reserved 6 | DestQPN 24
//   bytes 8-11  AckReq bit 31 | reserved 7 | PSN 24
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/psn.h"
#include "base/qpn.h"
#include "base/strong.h"
#include "wire/field_reader.h"
#include "wire/field_writer.h"
#include "wire/opcode.h"

namespace verbena::wire {

inline constexpr Pkey kDefaultPkey{0xffff};

struct Bth {
  static constexpr std::size_t kSize = 12;

  Opcode opcode{};
  bool solicited = false;
  bool migration_request = false;
  std::uint8_t pad_count = 0;          // 0 to 3
  std::uint8_t transport_version = 0;  // 0 to 15; only 0 exists
  Pkey pkey = kDefaultPkey;
  bool fecn = false;
  bool becn = false;
  Qpn destination_qpn{};
  bool ack_request = false;
  Psn psn{};

  static constexpr Bth decode(std::span<const std::byte, kSize> bytes) noexcept {
    FieldReader fields(bytes.data());
    Bth bth;
    bth.opcode = static_cast<Opcode>(fields.u8());
    const std::uint8_t flags = fields.u8();
    bth.solicited = (flags & kSolicited) != 0;
    bth.migration_request = (flags & kMigrationRequest) != 0;
    bth.pad_count = static_cast<std::uint8_t>((flags >> kPadCountShift) & 0x3);
    bth.transport_version = flags & 0x0f;
    bth.pkey = Pkey(fields.u16());
    const std::uint8_t congestion = fields.u8();
    bth.fecn = (congestion & kFecn) != 0;
    bth.becn = (congestion & kBecn) != 0;
    bth.destination_qpn = Qpn(fields.u24());
    bth.ack_request = (fields.u8() & kAckRequest) != 0;
    bth.psn = Psn(fields.u24());
    return bth;
  }

  // Reserved bits are written as zero.
  constexpr void encode(std::span<std::byte, kSize> out) const noexcept {
    FieldWriter fields(out.data());
    fields.u8(static_cast<std::uint8_t>(opcode));
    fields.u8(static_cast<std::uint8_t>((solicited ? kSolicited : 0) | (migration_request ? kMigrationRequest : 0) |
                                        ((pad_count & 0x3) << kPadCountShift) | (transport_version & 0x0f)));
    fields.u16(pkey.value());
    fields.u8(static_cast<std::uint8_t>((fecn ? kFecn : 0) | (becn ? kBecn : 0)));
    fields.u24(destination_qpn.value());
    fields.u8(ack_request ? kAckRequest : 0);
    fields.u24(psn.value());
  }

  friend constexpr bool operator==(const Bth&, const Bth&) noexcept = default;

 private:
  static constexpr std::uint8_t kSolicited = 0x80;
  static constexpr std::uint8_t kMigrationRequest = 0x40;
  static constexpr int kPadCountShift = 4;
  static constexpr std::uint8_t kFecn = 0x80;
  static constexpr std::uint8_t kBecn = 0x40;
  static constexpr std::uint8_t kAckRequest = 0x80;
};

}  // namespace verbena::wire
