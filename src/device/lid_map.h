// Which LIDs are on which other host: "8@10.0.0.2,16-23@10.0.0.3". What is not in it is on this host.
//
// Thread-safety: a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "verbena/gid.h"
#include "verbena/result.h"

namespace verbena::device {

class LidMap {
 public:
  // Adds "8@10.0.0.2" or "16-23@fd00::2". kInvalidArgument names `source` and what is wrong: no LIDs, no address, or
  // LIDs that another address has.
  Status add(std::string_view source, std::string_view text);

  // The address of the host that has the LID.
  std::optional<Gid> address_of(std::uint16_t lid) const noexcept;

 private:
  struct Row {
    std::uint16_t first;
    std::uint16_t last;
    Gid address;
  };
  std::vector<Row>::const_iterator first_from(std::uint16_t lid) const noexcept;

  std::vector<Row> rows_;  // ascending, none overlaps another
};

// A list with commas.
Result<LidMap> parse_lid_map(std::string_view text);

}  // namespace verbena::device
