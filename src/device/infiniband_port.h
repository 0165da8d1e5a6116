// A port on an InfiniBand link as its subnet has configured it: what a subnet manager would have written into it.
//
// Thread-safety: a plain value.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "verbena/gid.h"
#include "verbena/result.h"

namespace verbena::device {

struct InfinibandPort {
  static constexpr std::size_t kPkeyTableLength = 32;
  static constexpr std::uint64_t kLinkLocalPrefix = 0xfe80000000000000;
  static constexpr std::uint16_t kLastUnicastLid = 0xbfff;

  std::uint64_t guid = 0;  // of the port; 0: to be made from the interface and the LID
  std::uint64_t subnet_prefix = kLinkLocalPrefix;
  std::uint16_t lid = 1;  // the first of 2^lmc
  std::uint8_t lmc = 0;
  std::uint16_t sm_lid = 1;
  std::uint8_t sm_sl = 0;
  std::vector<std::uint16_t> pkeys{0xffff};

  std::uint16_t last_lid() const noexcept { return static_cast<std::uint16_t>(lid + (1U << lmc) - 1); }
  bool has_lid(std::uint16_t wanted) const noexcept { return wanted >= lid && wanted <= last_lid(); }
  // Of one of its LIDs.
  std::uint8_t path_bits(std::uint16_t own) const noexcept { return static_cast<std::uint8_t>(own - lid); }
  Gid gid() const noexcept { return gid_with(subnet_prefix); }
  // A port answers to the link-local prefix whatever its subnet's is.
  bool has_gid(const Gid& wanted) const noexcept { return wanted == gid() || wanted == gid_with(kLinkLocalPrefix); }

  friend bool operator==(const InfinibandPort&, const InfinibandPort&) = default;

 private:
  Gid gid_with(std::uint64_t prefix) const noexcept;
};

// Sets lid, lmc, sm_lid, sm_sl, guid, subnet_prefix or pkeys ("0xffff+0x8001") from text. kInvalidArgument names
// `source` (a variable, or a line of a file) and what is wrong.
Status set_attribute(std::string_view source, std::string_view key, std::string_view value, InfinibandPort& port);

// What no single attribute shows: that the LIDs begin at a multiple of 2^lmc and stay below the multicast ones.
Status check(std::string_view source, const InfinibandPort& port);

}  // namespace verbena::device
