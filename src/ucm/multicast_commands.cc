// Multicast memberships: the group's address handle in an event. The program, or librdmacm for it, attaches its queue
// pair, and that joins the group of IP.
#include <cerrno>

#include <fmt/format.h>

#include "ucm/address_handle_attributes.h"
#include "ucm/command_bytes.h"
#include "ucm/service.h"

namespace verbena::ucm {
namespace {

constexpr std::uint32_t kMulticastQpn = 0xffffff;

}  // namespace

Status Service::join_ip(const Command& command) {
  const auto request = read_command<rdma_ucm_join_ip_mcast>(command);
  if (!request) return tl::make_unexpected(request.error());
  const auto identifier = find(command, request->id);
  if (!identifier) return tl::make_unexpected(identifier.error());
  const auto group = parse_address(&request->addr, sizeof request->addr);
  return join_group(command, **identifier, group.value_or(any_address(true)), request->uid, request->response);
}

Status Service::join(const Command& command) {
  const auto request = read_command<rdma_ucm_join_mcast>(command);
  if (!request) return tl::make_unexpected(request.error());
  const auto identifier = find(command, request->id);
  if (!identifier) return tl::make_unexpected(identifier.error());
  if (request->join_flags > RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER) {
    return failure(ErrorCode::kInvalidArgument, fmt::format("rdma_cm: join flags {:#x}", request->join_flags), EINVAL);
  }
  const auto group = parse_address(&request->addr, std::min<std::size_t>(request->addr_size, sizeof request->addr));
  return join_group(command, **identifier, group.value_or(any_address(true)), request->uid, request->response);
}

Status Service::join_group(const Command& command, Identifier& identifier, const SocketAddress& group,
                           std::uint64_t uid, std::uint64_t response) {
  if (!group.gid.is_multicast()) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("rdma_cm: {} is no multicast address of IP", verbena::to_string(group.gid)), EINVAL);
  }
  if (!identifier.station) return wrong_stage("join_mcast");
  while (next_number_ == 0 || memberships_.contains(next_number_) || identifiers_.contains(next_number_)) {
    next_number_ = (next_number_ + 1) & 0x7fffffff;
  }
  const std::uint32_t membership = next_number_++;
  if (auto written = write_answer(command, response, rdma_ucm_create_id_resp{membership}); !written) return written;
  memberships_[membership] = {.identifier = identifier.number, .uid = uid};
  identifier.multicasts.insert(membership);

  WaitingEvent waiting;
  waiting.multicast = membership;
  waiting.counted_by = identifier.number;
  waiting.response.uid = uid;
  waiting.response.id = membership;
  waiting.response.event = number(EventKind::kMulticastJoined);
  auto& parameters = waiting.response.param.ud;
  parameters.qp_num = kMulticastQpn;
  parameters.qkey = identifier.qkey;
  parameters.ah_attr = address_handle_attributes(*identifier.station, group.gid, identifier.options.type_of_service);
  identifier.channel->post(waiting);
  return {};
}

Status Service::leave(const Command& command) {
  const auto request = read_command<rdma_ucm_destroy_id>(command);
  if (!request) return tl::make_unexpected(request.error());
  const auto found = memberships_.find(request->id);
  if (found == memberships_.end()) {
    return failure(ErrorCode::kNotFound, fmt::format("rdma_cm: no membership {}", request->id), ENOENT);
  }
  const rdma_ucm_destroy_id_resp answer{found->second.events_reported};
  if (auto room = has_room(command, sizeof answer); !room) return room;
  const auto identifier = find(command, found->second.identifier);
  if (!identifier) return tl::make_unexpected(identifier.error());
  (*identifier)->multicasts.erase(request->id);
  std::erase_if(command.channel.events(), [&](const WaitingEvent& event) { return event.multicast == request->id; });
  command.channel.settle(command.fd);
  memberships_.erase(found);
  return write_answer(command, request->response, answer);
}

}  // namespace verbena::ucm
