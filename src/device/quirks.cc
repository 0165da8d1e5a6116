#include "device/quirks.h"

#include <algorithm>

#include <fmt/format.h>

namespace verbena::device {

engine::ReceiveQuirks Quirks::of_receiving() const noexcept {
  return {.grh_checksum_zero = has(Quirk::kGrhChecksumZero),
          .grh_dirty = has(Quirk::kGrhDirty),
          .wc_sl_unfilled = has(Quirk::kWcSlUnfilled),
          .rnr_nak_lost = has(Quirk::kRnrNakLost)};
}

Result<Quirks> parse_quirks(std::string_view text) {
  Quirks quirks;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const std::string_view name = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    if (name.empty()) continue;
    const auto row =
        std::find_if(kQuirkRows.begin(), kQuirkRows.end(), [name](const QuirkRow& one) { return one.name == name; });
    if (row == kQuirkRows.end()) {
      std::string known;
      for (const QuirkRow& one : kQuirkRows) known += (known.empty() ? "" : ", ") + std::string(one.name);
      return failure(ErrorCode::kInvalidArgument,
                     fmt::format("VERBENA_QUIRKS: \"{}\" is not known: there are {}", name, known));
    }
    quirks.set(static_cast<Quirk>(row - kQuirkRows.begin()));
  }
  return quirks;
}

}  // namespace verbena::device
