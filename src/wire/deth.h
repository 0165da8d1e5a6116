// Datagram Extended Transport Header: Q_Key 32 | reserved 8 | SrcQPN 24
// (InfiniBand Architecture volume 1, section 9.3.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/qpn.h"
#include "base/strong.h"
#include "wire/field_reader.h"
#include "wire/field_writer.h"

namespace verbena::wire {

struct Deth {
  static constexpr std::size_t kSize = 8;

  Qkey qkey{};
  Qpn source_qpn{};

  static constexpr Deth decode(std::span<const std::byte, kSize> bytes) noexcept {
    FieldReader fields(bytes.data());
    Deth header;
    header.qkey = Qkey(fields.u32());
    fields.skip(1);
    header.source_qpn = Qpn(fields.u24());
    return header;
  }

  constexpr void encode(std::span<std::byte, kSize> out) const noexcept {
    FieldWriter fields(out.data());
    fields.u32(qkey.value());
    fields.zeros(1);
    fields.u24(source_qpn.value());
  }

  friend constexpr bool operator==(const Deth&, const Deth&) noexcept = default;
};

}  // namespace verbena::wire
