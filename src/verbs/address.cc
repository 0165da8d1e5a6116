#include "verbs/address.h"

#include <algorithm>

namespace verbena::verbs {

Gid to_gid(const ibv_gid& gid) noexcept {
  Gid value;
  std::copy(std::begin(gid.raw), std::end(gid.raw), value.bytes.begin());
  return value;
}

ibv_gid to_verbs(const Gid& gid) noexcept {
  ibv_gid raw{};
  std::copy(gid.bytes.begin(), gid.bytes.end(), raw.raw);
  return raw;
}

engine::AddressVector to_engine(const ibv_ah_attr& attributes) noexcept {
  return {.destination = to_gid(attributes.grh.dgid),
          .flow_label = attributes.grh.flow_label,
          .sgid_index = attributes.grh.sgid_index,
          .hop_limit = attributes.grh.hop_limit,
          .traffic_class = attributes.grh.traffic_class,
          .is_global = attributes.is_global != 0,
          .destination_lid = attributes.dlid,
          .service_level = attributes.sl,
          .source_path_bits = attributes.src_path_bits,
          .static_rate = attributes.static_rate,
          .port = attributes.port_num};
}

ibv_ah_attr to_verbs(const engine::AddressVector& vector) noexcept {
  ibv_ah_attr attributes{};
  attributes.grh.dgid = to_verbs(vector.destination);
  attributes.grh.flow_label = vector.flow_label;
  attributes.grh.sgid_index = vector.sgid_index;
  attributes.grh.hop_limit = vector.hop_limit;
  attributes.grh.traffic_class = vector.traffic_class;
  attributes.is_global = vector.is_global ? 1 : 0;
  attributes.dlid = vector.destination_lid;
  attributes.sl = vector.service_level;
  attributes.src_path_bits = vector.source_path_bits;
  attributes.static_rate = vector.static_rate;
  attributes.port_num = vector.port;
  return attributes;
}

}  // namespace verbena::verbs
