// Commands that make identifiers, give them addresses and settings, and end them.
#include <cerrno>

#include <fmt/format.h>
#include <infiniband/verbs.h>

#include "device/clock.h"
#include "device/log.h"
#include "ucm/command_bytes.h"
#include "ucm/descriptors.h"
#include "ucm/service.h"

namespace verbena::ucm {
namespace {

constexpr std::uint16_t kFirstFreePort = 32768;
constexpr std::uint16_t kFreePorts = 28232;
constexpr std::uint32_t kDatagramQkey = 0x01234567;  // of RDMA_PS_UDP, where the program gives none

Result<SocketAddress> read_address(const void* bytes, std::size_t size, const char* what) {
  const auto address = parse_address(bytes, size);
  if (address) return *address;
  return failure(ErrorCode::kUnsupported,
                 fmt::format("rdma_cm: the {} is of neither AF_INET nor AF_INET6 (AF_IB is not offered)", what),
                 EAFNOSUPPORT);
}

bool is_group(const SocketAddress& address) noexcept {
  return address.gid.is_multicast();
}

}  // namespace

Status Service::create_id(const Command& command) {
  const auto request = read_command<rdma_ucm_create_id>(command);
  if (!request) return tl::make_unexpected(request.error());
  if (request->ps != RDMA_PS_TCP && request->ps != RDMA_PS_UDP) {
    const bool known = request->ps == RDMA_PS_IB || request->ps == RDMA_PS_IPOIB;
    return failure(
        ErrorCode::kUnsupported,
        fmt::format("rdma_cm: port space {:#x} is not offered, only RDMA_PS_TCP and RDMA_PS_UDP", request->ps),
        known ? EOPNOTSUPP : EINVAL);
  }
  Identifier& identifier = make_identifier(channels_.at(command.channel.inode()));
  identifier.uid = request->uid;
  identifier.space = static_cast<wire::PortSpace>(request->ps);
  identifier.qp_type = identifier.space == wire::PortSpace::kUdp ? std::uint8_t{IBV_QPT_UD} : request->qp_type;
  if (identifier.qp_type == 0) identifier.qp_type = IBV_QPT_RC;
  identifier.qkey = kDatagramQkey;
  const rdma_ucm_create_id_resp answer{identifier.number};
  auto written = write_answer(command, request->response, answer);
  if (!written) identifiers_.erase(identifier.number);
  return written;
}

Status Service::destroy_id(const Command& command) {
  const auto request = read_command<rdma_ucm_destroy_id>(command);
  if (!request) return tl::make_unexpected(request.error());
  const auto identifier = find(command, request->id);
  if (!identifier) return tl::make_unexpected(identifier.error());
  const rdma_ucm_destroy_id_resp answer{(*identifier)->events_reported};
  if (auto room = has_room(command, sizeof answer); !room) return room;
  destroy(request->id);
  command.channel.settle(command.fd);
  return write_answer(command, request->response, answer);
}

Status Service::bind_ip(const Command& command) {
  const auto request = read_command<rdma_ucm_bind_ip>(command);
  if (!request) return tl::make_unexpected(request.error());
  const auto identifier = find(command, request->id);
  if (!identifier) return tl::make_unexpected(identifier.error());
  const auto address = read_address(&request->addr, sizeof request->addr, "address to bind");
  return address ? bind_to(**identifier, *address) : tl::make_unexpected(address.error());
}

Status Service::bind(const Command& command) {
  const auto request = read_command<rdma_ucm_bind>(command);
  if (!request) return tl::make_unexpected(request.error());
  const auto identifier = find(command, request->id);
  if (!identifier) return tl::make_unexpected(identifier.error());
  const std::size_t size = std::min<std::size_t>(request->addr_size, sizeof request->addr);
  const auto address = read_address(&request->addr, size, "address to bind");
  return address ? bind_to(**identifier, *address) : tl::make_unexpected(address.error());
}

Status Service::bind_to(Identifier& identifier, const SocketAddress& address) {
  if (identifier.stage != Stage::kIdle) return wrong_stage("bind");
  std::optional<Station> station;
  if (address.is_any()) {
    if (auto opened = open_all_ports(*runtime_); !opened) return opened;
  } else {
    const auto found = find_station_or_any(*runtime_, address.gid);
    if (!found) {
      Error error = found.error();
      if (error.system_errno == ENODEV) error.system_errno = EADDRNOTAVAIL;  // as the kernel, of an address nobody has
      return tl::make_unexpected(error);
    }
    station = *found;
  }
  const SocketAddress before = identifier.source;
  identifier.source = address;
  // Who asks for its name, to tell another host, needs the address that stands for a loopback address.
  if (station) identifier.source.gid = station->gid;
  identifier.station = station;
  if (auto claimed = claim_port(identifier); !claimed) {
    identifier.source = before;
    identifier.station.reset();
    return claimed;
  }
  identifier.stage = Stage::kBound;
  return {};
}

Status Service::claim_port(Identifier& identifier) {
  std::optional<Gid> at;
  if (identifier.station) at = identifier.station->gid;
  const std::uint16_t port = identifier.source.port;
  if (identifier.options.reuse_address && port != 0) {
    for (const auto& [number, other] : identifiers_) {
      const bool same = other->claim && other->space == identifier.space && other->source.port == port &&
                        other->source.gid == identifier.source.gid && other->options.reuse_address;
      if (!same || other->stage == Stage::kListening) continue;
      identifier.claim = other->claim;
      return {};
    }
  }
  auto claim = PortClaim::take(identifier.space, port, at, identifier.options.reuse_address, draw());
  if (!claim) return tl::make_unexpected(claim.error());
  if (auto watched = watch(claim->fd()); !watched) return watched;
  identifier.source.port = claim->port();
  identifier.claim = std::make_shared<PortClaim>(std::move(*claim));
  return {};
}

Status Service::resolve_ip(const Command& command) {
  const auto request = read_command<rdma_ucm_resolve_ip>(command);
  if (!request) return tl::make_unexpected(request.error());
  const auto identifier = find(command, request->id);
  if (!identifier) return tl::make_unexpected(identifier.error());
  const auto destination = read_address(&request->dst_addr, sizeof request->dst_addr, "destination");
  if (!destination) return tl::make_unexpected(destination.error());
  return resolve(**identifier, parse_address(&request->src_addr, sizeof request->src_addr), *destination);
}

Status Service::resolve_address(const Command& command) {
  const auto request = read_command<rdma_ucm_resolve_addr>(command);
  if (!request) return tl::make_unexpected(request.error());
  const auto identifier = find(command, request->id);
  if (!identifier) return tl::make_unexpected(identifier.error());
  const std::size_t size = std::min<std::size_t>(request->dst_size, sizeof request->dst_addr);
  const auto destination = read_address(&request->dst_addr, size, "destination");
  if (!destination) return tl::make_unexpected(destination.error());
  const std::size_t source_size = std::min<std::size_t>(request->src_size, sizeof request->src_addr);
  return resolve(**identifier, parse_address(&request->src_addr, source_size), *destination);
}

// What cannot be reached is told by an event, as the kernel tells it: it asks the network meanwhile.
Status Service::resolve(Identifier& identifier, const std::optional<SocketAddress>& source,
                        const SocketAddress& destination) {
  if (identifier.stage == Stage::kIdle && source) identifier.source = *source;
  if (identifier.stage != Stage::kIdle && identifier.stage != Stage::kBound) return wrong_stage("resolve_addr");
  if (identifier.source.is_any() && !identifier.claim) {
    const std::uint16_t port = identifier.source.port;
    identifier.source = any_address(destination.ipv4);
    identifier.source.port = port;
  }
  const auto failed = [&](const Error& error) -> Status {
    device::report(error);
    post(identifier, EventKind::kAddressError, error.system_errno != 0 ? -error.system_errno : -ENODEV);
    return {};
  };
  std::optional<SocketAddress> from;
  if (!identifier.source.is_any()) from = identifier.source;
  if (from && from->ipv4 != destination.ipv4) {
    return failure(ErrorCode::kInvalidArgument, "rdma_cm: source and destination are of two families", EINVAL);
  }
  auto found = source_address(destination, from);
  if (!found) return failed(found.error());
  const auto station = find_station_or_any(*runtime_, found->gid);
  if (!station) return failed(station.error());

  found->port = identifier.source.port;
  if (found->port == 0) found->port = static_cast<std::uint16_t>(kFirstFreePort + draw() % kFreePorts);
  identifier.source = *found;
  identifier.station = *station;
  identifier.destination = destination;
  // A loopback address that no device has stands for the one that was found.
  identifier.remote = destination.gid.is_loopback() && station->gid != found->gid ? station->gid : destination.gid;
  identifier.stage = Stage::kAddressResolved;
  if (is_group(destination)) identifier.remote = destination.gid;
  post(identifier, EventKind::kAddressResolved);
  return {};
}

Status Service::resolve_route(const Command& command) {
  const auto request = read_command<rdma_ucm_resolve_route>(command);
  if (!request) return tl::make_unexpected(request.error());
  const auto identifier = find(command, request->id);
  if (!identifier) return tl::make_unexpected(identifier.error());
  if ((*identifier)->stage != Stage::kAddressResolved) return wrong_stage("resolve_route");
  (*identifier)->stage = Stage::kRouteResolved;
  post(**identifier, EventKind::kRouteResolved);
  return {};
}

Status Service::set_option(const Command& command) {
  const auto request = read_command<rdma_ucm_set_option>(command);
  if (!request) return tl::make_unexpected(request.error());
  const auto identifier = find(command, request->id);
  if (!identifier) return tl::make_unexpected(identifier.error());
  if (request->level != RDMA_OPTION_ID) {
    return failure(ErrorCode::kUnsupported, fmt::format("rdma_cm: options of level {} are not offered", request->level),
                   ENOSYS);
  }
  const bool byte = request->optname == RDMA_OPTION_ID_TOS || request->optname == RDMA_OPTION_ID_ACK_TIMEOUT;
  if (request->optlen != (byte ? 1U : sizeof(int)) || request->optval == 0) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("rdma_cm: option {} with a value of {} bytes", request->optname, request->optlen),
                   EINVAL);
  }
  const auto* const value = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(request->optval));
  int number = 0;
  std::memcpy(&number, value, request->optlen);  // little-endian, or the whole
  Options& options = (*identifier)->options;
  switch (request->optname) {
    case RDMA_OPTION_ID_TOS:
      options.type_of_service = static_cast<std::uint8_t>(number);
      return {};
    case RDMA_OPTION_ID_REUSEADDR:
      options.reuse_address = number != 0;
      return {};
    case RDMA_OPTION_ID_AFONLY:
      if ((*identifier)->stage != Stage::kIdle) return wrong_stage("set_option AFONLY");
      options.ipv6_only = number != 0;
      return {};
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      if ((number & 0xe0) != 0) return failure(ErrorCode::kInvalidArgument, "rdma_cm: an ACK timeout above 31", EINVAL);
      options.ack_timeout = static_cast<std::uint8_t>(number);
      return {};
    default:
      return failure(ErrorCode::kUnsupported, fmt::format("rdma_cm: option {} is not offered", request->optname),
                     ENOSYS);
  }
}

// To the channel that the command was written to, from the one that it names.
Status Service::migrate_id(const Command& command) {
  const auto request = read_command<rdma_ucm_migrate_id>(command);
  if (!request) return tl::make_unexpected(request.error());
  const int fd = static_cast<int>(request->fd);
  const auto from = may_be_channel(fd) ? channel_of(channel_inode(fd)) : nullptr;
  Identifier* const identifier = find(request->id);
  if (from == nullptr || identifier == nullptr || identifier->channel != from) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("rdma_cm: descriptor {} is no channel of identifier {}", fd, request->id), EINVAL);
  }
  const auto to = channels_.at(command.channel.inode());
  const rdma_ucm_migrate_resp answer{identifier->events_reported};
  if (auto room = has_room(command, sizeof answer); !room) return room;
  if (from == to) return write_answer(command, request->response, answer);
  auto& events = from->events();
  for (auto event = events.begin(); event != events.end();) {
    if (event->counted_by != identifier->number) {
      ++event;
      continue;
    }
    if (Identifier* const child = find(event->child)) child->channel = to;
    to->post(*event);
    event = events.erase(event);
  }
  from->settle(fd);
  identifier->channel = to;
  return write_answer(command, request->response, answer);
}

}  // namespace verbena::ucm
