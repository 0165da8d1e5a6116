// Behaviour of devices in the field that programs meet, each by its name in VERBENA_QUIRKS. One row each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/receive_quirks.h"
#include "verbena/result.h"

namespace verbena::device {

enum class Quirk : std::uint8_t {
  kMemlock,
  kGrhChecksumZero,
  kGrhDirty,
  kWcSlUnfilled,
  kHopLimitOverride,
  kRnrNakLost,
  kCount,
};
inline constexpr std::size_t kQuirks = static_cast<std::size_t>(Quirk::kCount);

struct QuirkRow {
  std::string_view name;
  std::string_view doc;
};

inline constexpr std::array<QuirkRow, kQuirks> kQuirkRows{{
    {"memlock", "registering memory counts against `ulimit -l` of the process, unless it has CAP_IPC_LOCK"},
    {"grh_checksum_zero", "the IPv4 header of a received datagram has the checksum 0"},
    {"grh_dirty", "the first 20 bytes of the 40 in front of a datagram over IPv4 stay as they were"},
    {"wc_sl_unfilled", "`wc.sl` of a received datagram is 0 and does not tell IPv4 from IPv6"},
    {"hop_limit_override",
     "every address handle has the hop limit 64, whatever it was made with, and its attributes say so"},
    {"rnr_nak_lost",
     "a connection's message that finds no receive is answered with nothing: the sender's timeout and retry_cnt "
     "decide, "
     "not rnr_retry"},
}};

class Quirks {
 public:
  bool has(Quirk quirk) const noexcept { return (bits_ & bit(quirk)) != 0; }
  void set(Quirk quirk) noexcept { bits_ |= bit(quirk); }
  engine::ReceiveQuirks of_receiving() const noexcept;

 private:
  static constexpr std::uint32_t bit(Quirk quirk) noexcept { return 1U << static_cast<unsigned>(quirk); }
  std::uint32_t bits_ = 0;
};

// "memlock,grh_dirty". kInvalidArgument for a name that no row has.
Result<Quirks> parse_quirks(std::string_view text);

inline constexpr std::uint8_t kOverriddenHopLimit = 64;

}  // namespace verbena::device
