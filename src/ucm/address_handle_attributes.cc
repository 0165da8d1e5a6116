#include "ucm/address_handle_attributes.h"

#include <bit>
#include <cstring>

#include "device/rcu.h"

namespace verbena::ucm {

ib_uverbs_ah_attr address_handle_attributes(const Station& from, const Gid& to, std::uint8_t traffic_class) noexcept {
  ib_uverbs_ah_attr attributes{};
  std::memcpy(attributes.grh.dgid, to.bytes.data(), sizeof attributes.grh.dgid);
  const device::RcuReadSection section;
  attributes.grh.sgid_index = static_cast<std::uint8_t>(from.port->snapshot().gids.index_of(from.gid).value_or(0));
  attributes.grh.hop_limit = kHopLimit;
  attributes.grh.traffic_class = traffic_class;
  attributes.is_global = 1;
  attributes.port_num = from.port->number();
  return attributes;
}

std::uint8_t path_mtu(const Station& station) noexcept {
  const device::RcuReadSection section;
  constexpr int kOf256 = 8;  // 1 << 8
  return static_cast<std::uint8_t>(std::bit_width(station.port->snapshot().mtu) - kOf256);
}

}  // namespace verbena::ucm
