#include "engine/address_handle.h"

#include <cerrno>
#include <string>
#include <utility>

#include "wire/infiniband_header.h"
#include "wire/source_port.h"

namespace verbena::engine {
namespace {

constexpr std::uint8_t kMaxServiceLevel = 15;

tl::unexpected<Error> refuse(std::string message) {
  return failure(ErrorCode::kInvalidArgument, std::move(message), EINVAL);
}

Status check_port(const AddressVector& vector, const PortView& port) {
  if (vector.port != port.number) {
    return refuse(why_not(vector.port, port, "the queue pair"));
  }
  if (vector.service_level > kMaxServiceLevel) {
    return refuse("service level " + std::to_string(vector.service_level) + " is above 15");
  }
  if (!bits_per_second(vector.static_rate)) {
    return refuse("static rate " + std::to_string(vector.static_rate) + " is not a code of enum ibv_rate");
  }
  if (!vector.is_global && port.link_layer == LinkLayer::kEthernet) {
    return refuse("a GRH is needed on RoCE: set is_global, the destination GID and the source GID index");
  }
  return {};
}

Status check_lids(const AddressVector& vector, const PortView& port) {
  if (vector.destination_lid == 0) {
    return refuse("LID 0 names no port: on InfiniBand each address needs the LID of the destination (dlid)");
  }
  if (vector.destination_lid == wire::kPermissiveLid) {
    return refuse("LID 65535 is the permissive one, which names no port: it is for management packets alone");
  }
  if (wire::is_multicast_lid(vector.destination_lid) && !vector.is_global) {
    return refuse("LID " + std::to_string(vector.destination_lid) +
                  " is of a multicast group, and needs a GRH with its GID: set is_global");
  }
  if (vector.source_path_bits >> port.lmc != 0) {
    return refuse("source path bits " + std::to_string(vector.source_path_bits) + " are outside the port's " +
                  std::to_string(1U << port.lmc) + " LIDs (LMC " + std::to_string(port.lmc) + ")");
  }
  return {};
}

// The source GID, and whether packets can go from it to the destination.
Result<Gid> check_gids(const AddressVector& vector, const PortView& port) {
  const std::string index = "source GID index " + std::to_string(vector.sgid_index);
  if (vector.sgid_index >= port.gids.size()) {
    return refuse(index + " is outside the table of " + std::to_string(port.gids.size()) + " entries");
  }
  const GidEntry& source = port.gids[vector.sgid_index];
  if (source.gid.is_zero()) return refuse(index + " is empty");
  if (vector.destination.is_zero()) return refuse("destination GID is zero");
  if (port.link_layer == LinkLayer::kInfiniband) return source.gid;
  if (source.type == GidType::kRoceV1)
    return refuse(index + " is a RoCE v1 entry; use the RoCE v2 entry of the address");
  if (vector.destination == Gid::from_ipv4(0) || vector.destination == Gid::from_ipv4(UINT32_MAX)) {
    return refuse("destination " + to_string(vector.destination) + " is the address of no port");
  }
  if (source.gid.is_ipv4_mapped() != vector.destination.is_ipv4_mapped()) {
    return refuse("destination " + to_string(vector.destination) + " is of another address family than " + index +
                  ", which is " + to_string(source.gid));
  }
  return source.gid;
}

// By LID, and where the vector is global with a GRH.
Result<AddressHandle> validate_infiniband(const AddressVector& vector, const PortView& port,
                                          const ProtectionDomain* domain) {
  if (Status status = check_lids(vector, port); !status) return tl::make_unexpected(std::move(status.error()));
  AddressHandle handle{.domain = domain, .vector = vector, .envelope = {}, .byte_period = 0};
  handle.vector.flow_label &= wire::kFlowLabelMask;
  LinkRoute& link = handle.envelope.link;
  link.port = port.process_port;
  link.path_bits = vector.source_path_bits;
  link.destination_lid = vector.destination_lid;
  link.service_level = vector.service_level;
  handle.byte_period = byte_period(*bits_per_second(vector.static_rate));
  if (!vector.is_global) return handle;

  const Result<Gid> source = check_gids(vector, port);
  if (!source) return tl::make_unexpected(source.error());
  link.has_grh = true;
  link.flow_label = handle.vector.flow_label;
  handle.envelope.source = *source;
  handle.envelope.destination = vector.destination;
  handle.envelope.traffic_class = vector.traffic_class;
  handle.envelope.hop_limit = vector.hop_limit;  // 0 is usual within a subnet, where no router counts
  return handle;
}

}  // namespace

Result<AddressHandle> validate(const AddressVector& vector, const PortView& port, const ProtectionDomain* domain) {
  if (Status status = check_port(vector, port); !status) return tl::make_unexpected(std::move(status.error()));
  if (port.link_layer == LinkLayer::kInfiniband) return validate_infiniband(vector, port, domain);
  const Result<Gid> source = check_gids(vector, port);
  if (!source) return tl::make_unexpected(source.error());

  AddressHandle handle{.domain = domain, .vector = vector, .envelope = {}, .byte_period = 0};
  handle.vector.flow_label &= wire::kFlowLabelMask;
  const std::uint32_t label = handle.vector.flow_label;
  handle.envelope.source = *source;
  handle.envelope.destination = vector.destination;
  handle.envelope.source_port = label == 0 ? std::uint16_t{0} : wire::source_port_of_flow_label(label);
  handle.envelope.traffic_class = vector.traffic_class;
  handle.envelope.hop_limit = vector.hop_limit == 0 ? kDefaultHopLimit : vector.hop_limit;
  handle.byte_period = byte_period(*bits_per_second(vector.static_rate));
  return handle;
}

}  // namespace verbena::engine
