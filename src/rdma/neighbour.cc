#include "verbena/neighbour.h"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>
#include <linux/neighbour.h>
#include <sys/socket.h>

#include "rdma/netlink.h"
#include "rdma/network_notice.h"
#include "rdma/verbs_error.h"

namespace verbena {

Result<std::optional<MacAddress>> look_up_neighbour(const Gid& next_hop, std::uint32_t netdev) {
  if (netdev == 0) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("neighbour {}: interface 0 is none; a neighbour belongs to the interface of the route "
                               "(look_up_route tells it)",
                               to_string(next_hop)));
  }
  ndmsg question{};
  question.ndm_family = next_hop.is_ipv4_mapped() ? AF_INET : AF_INET6;
  question.ndm_ifindex = static_cast<int>(netdev);
  rdma::NetlinkRequest request(RTM_GETNEIGH);
  request.fixed(question).attribute(NDA_DST, rdma::address_in(next_hop));
  const Result<rdma::NetlinkAnswer> answer = rdma::ask_kernel(NETLINK_ROUTE, request, "a neighbour");
  if (!answer) return tl::make_unexpected(answer.error());
  if (answer->refused == ENOENT) return std::nullopt;
  if (answer->refused != 0) {
    return rdma::verbs_failure("RTM_GETNEIGH", fmt::format("of {} on interface {}", to_string(next_hop), netdev),
                               answer->refused);
  }
  if (answer->messages.empty()) return std::nullopt;
  const rdma::NetlinkMessage& message = answer->messages.front();
  const std::optional<NetworkChange> entry = rdma::read_notice(message.type, message.body);
  return entry ? entry->mac : std::nullopt;
}

}  // namespace verbena
