// The common header of a management datagram (InfiniBand Architecture volume 1, section 13.4.2), and where such
// datagrams go: 256 bytes as one UD send between queue pairs 1.
//
//   byte 0  base version | class | class version | method
//   byte 4  status 16 | class specific 16
//   byte 8  transaction 64
//   byte 16 attribute 16 | reserved 16
//   byte 20 attribute modifier 32
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/qpn.h"
#include "base/strong.h"
#include "wire/field_reader.h"
#include "wire/field_writer.h"

namespace verbena::wire {

inline constexpr std::size_t kMadSize = 256;
inline constexpr Qpn kGeneralServicesQpn{1};
inline constexpr Qkey kGeneralServicesQkey{0x80010000};

using Mad = std::array<std::byte, kMadSize>;

struct MadHeader {
  static constexpr std::size_t kSize = 24;

  std::uint8_t base_version = 1;
  std::uint8_t management_class = 0;
  std::uint8_t class_version = 2;
  std::uint8_t method = 0;
  std::uint16_t status = 0;
  std::uint64_t transaction = 0;
  std::uint16_t attribute = 0;
  std::uint32_t modifier = 0;

  static constexpr MadHeader decode(std::span<const std::byte, kSize> bytes) noexcept {
    FieldReader fields(bytes.data());
    MadHeader header;
    header.base_version = fields.u8();
    header.management_class = fields.u8();
    header.class_version = fields.u8();
    header.method = fields.u8();
    header.status = fields.u16();
    fields.skip(2);
    header.transaction = (std::uint64_t{fields.u32()} << 32);
    header.transaction |= fields.u32();
    header.attribute = fields.u16();
    fields.skip(2);
    header.modifier = fields.u32();
    return header;
  }

  constexpr void encode(std::span<std::byte, kSize> out) const noexcept {
    FieldWriter fields(out.data());
    fields.u8(base_version);
    fields.u8(management_class);
    fields.u8(class_version);
    fields.u8(method);
    fields.u16(status);
    fields.zeros(2);
    fields.u32(static_cast<std::uint32_t>(transaction >> 32));
    fields.u32(static_cast<std::uint32_t>(transaction));
    fields.u16(attribute);
    fields.zeros(2);
    fields.u32(modifier);
  }

  friend constexpr bool operator==(const MadHeader&, const MadHeader&) noexcept = default;
};

}  // namespace verbena::wire
