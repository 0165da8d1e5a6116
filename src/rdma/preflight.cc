#include "verbena/preflight.h"

#include <algorithm>

#include <fmt/format.h>
#include <sys/resource.h>

#include "rdma/verbs_error.h"
#include "verbena/device.h"
#include "verbena/gid_resolver.h"

namespace verbena {

namespace {

constexpr rlim_t kSmallMemlock = rlim_t{64} << 20;

Finding port_finding(const Result<PortView>& view) {
  if (!view) return {"port_state", Severity::kFailure, view.error().message, "name a port that the device has"};
  std::string seen =
      fmt::format("port {} is {}, {}, MTU {}", view->port, view->state,
                  view->link_layer == LinkLayer::kEthernet ? "Ethernet (RoCE)" : "InfiniBand", view->active_mtu);
  if (view->active) return {"port_state", Severity::kGood, std::move(seen), ""};
  return {"port_state", Severity::kFailure, std::move(seen),
          view->link_layer == LinkLayer::kEthernet ? "bring the interface up (ip link set IFACE up) and check the cable"
                                                   : "check the cable, and that a subnet manager runs"};
}

Finding gid_finding(const Result<std::vector<GidEntry>>& table, std::uint8_t port) {
  if (!table) return {"gid_table", Severity::kFailure, table.error().message, "check the driver of the device"};
  const auto of_port = [port](const GidEntry& entry) { return entry.port == port; };
  const auto count = std::count_if(table->begin(), table->end(), of_port);
  if (count == 0) {
    return {"gid_table", Severity::kFailure, fmt::format("port {} has no GID in this network namespace", port),
            "give its interface an address; in a container attach a network interface of this device"};
  }
  const auto routed = std::count_if(table->begin(), table->end(), [&](const GidEntry& entry) {
    return of_port(entry) && !entry.gid.is_link_local() && entry.type != GidType::kRoceV1;
  });
  if (routed == 0) {
    return {"gid_table", Severity::kNote, fmt::format("port {} has {} GID(s), all link-local or RoCE v1", port, count),
            "give the interface an address that can be routed, unless all peers are on the same link"};
  }
  return {"gid_table", Severity::kGood, fmt::format("port {} has {} GID(s), {} can be routed", port, count, routed),
          ""};
}

Finding memlock_finding() {
  rlimit limit{};
  const bool known = getrlimit(RLIMIT_MEMLOCK, &limit) == 0;
  std::string seen = "this process may lock " + rdma::memlock_in_words() + " of memory";
  if (!known || limit.rlim_cur >= kSmallMemlock) return {"memlock", Severity::kGood, std::move(seen), ""};
  return {"memlock", Severity::kNote, std::move(seen),
          "kernel devices pin memory: raise the limit (ulimit -l, or memlock in the container) where ibv_reg_mr or "
          "ibv_create_cq fail with ENOMEM"};
}

Finding peer_finding(const std::vector<GidEntry>& table, std::uint8_t port, const Gid& peer, std::uint8_t hop_limit) {
  const Result<SourceChoice> choice =
      choose_source(table, {.destination = peer, .port = port, .netdev = 0, .source = {}}, look_up_route);
  if (!choice) return {"source_for_peer", Severity::kFailure, choice.error().message, "see the text"};
  if (hop_limit <= 1 && !choice->route.gateway.is_zero()) {
    return {"source_for_peer", Severity::kFailure,
            fmt::format("{}; the way crosses the router {}, and hop limit {} ends there", choice->explanation,
                        to_string(choice->route.gateway), hop_limit),
            "use a hop limit of 64"};
  }
  return {"source_for_peer", Severity::kGood, choice->explanation, ""};
}

}  // namespace

const char* to_string(Severity severity) noexcept {
  switch (severity) {
    case Severity::kGood:
      return "good";
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kFailure:
      return "failure";
  }
  return "unknown";
}

std::vector<Finding> preflight(ibv_context* context, std::uint8_t port, const std::optional<Gid>& peer,
                               std::uint8_t hop_limit) {
  const Result<std::vector<GidEntry>> table = read_gid_table(context);
  std::vector<Finding> findings{port_finding(query_port(context, port)), gid_finding(table, port), memlock_finding()};
  if (peer && table) findings.push_back(peer_finding(*table, port, *peer, hop_limit));
  return findings;
}

Severity worst(const std::vector<Finding>& findings) noexcept {
  Severity worst = Severity::kGood;
  for (const Finding& finding : findings) worst = std::max(worst, finding.severity);
  return worst;
}

std::uint32_t effective_mtu(std::uint32_t local_mtu, std::uint32_t peer_mtu, std::uint32_t route_ip_mtu,
                            bool ipv4) noexcept {
  constexpr std::uint32_t kTransport = 8 + 12 + 8 + 4 + 4;  // UDP, BTH, DETH, immediate data, ICRC
  constexpr std::uint32_t kSmallest = 256;
  constexpr std::uint32_t kLargest = 4096;
  const std::uint32_t overhead = kTransport + (ipv4 ? 20 : 40);
  std::uint32_t least = kLargest;
  if (local_mtu != 0) least = std::min(least, local_mtu);
  if (peer_mtu != 0) least = std::min(least, peer_mtu);
  if (route_ip_mtu != 0) least = std::min(least, route_ip_mtu > overhead ? route_ip_mtu - overhead : 0);
  std::uint32_t mtu = kLargest;
  while (mtu > least && mtu > kSmallest) mtu /= 2;
  return mtu;
}

}  // namespace verbena
