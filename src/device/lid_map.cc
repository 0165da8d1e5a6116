#include "device/lid_map.h"

#include <algorithm>
#include <string>

#include "base/setting_value.h"
#include "device/infiniband_port.h"

namespace verbena::device {

Status LidMap::add(std::string_view source, std::string_view text) {
  const auto at = text.find('@');
  const auto range = text.substr(0, at);
  const auto address = at == std::string_view::npos ? std::nullopt : parse_gid(text.substr(at + 1));
  if (!address || address->is_zero() || address->is_multicast()) {
    return wrong_part(source, text, "is no LID=ADDRESS pair: write 8@10.0.0.2 or 16-23@fd00::2");
  }
  const auto dash = range.find('-');
  const auto first = parse_whole(range.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_whole(range.substr(dash + 1));
  if (!first || !last || *first == 0 || *first > *last || *last > InfinibandPort::kLastUnicastLid) {
    return wrong_part(source, text, "has no range of unicast LIDs: write 8 or 16-23, from 1 to 49151");
  }
  Row row{static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last), *address};
  const auto begin = first_from(row.first);
  const auto end = std::find_if(begin, rows_.cend(), [&](const Row& other) { return other.first > row.last; });
  for (auto other = begin; other != end; ++other) {
    if (other->address != row.address) {
      return wrong_part(source, text, "has LIDs that " + to_string(other->address) + " has too");
    }
    row.first = std::min(row.first, other->first);
    row.last = std::max(row.last, other->last);
  }
  rows_.insert(rows_.erase(begin, end), row);
  return {};
}

std::optional<Gid> LidMap::address_of(std::uint16_t lid) const noexcept {
  const auto found = first_from(lid);
  return found == rows_.end() || found->first > lid ? std::nullopt : std::optional(found->address);
}

// The first row that ends at `lid` or behind it.
std::vector<LidMap::Row>::const_iterator LidMap::first_from(std::uint16_t lid) const noexcept {
  return std::partition_point(rows_.begin(), rows_.end(), [lid](const Row& row) { return row.last < lid; });
}

Result<LidMap> parse_lid_map(std::string_view text) {
  LidMap map;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const auto part = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    if (part.empty()) continue;
    if (auto added = map.add("VERBENA_LIDS", part); !added) return tl::make_unexpected(added.error());
  }
  return map;
}

}  // namespace verbena::device
