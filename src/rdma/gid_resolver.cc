#include "verbena/gid_resolver.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <net/if.h>

namespace verbena {

namespace {

using Candidates = std::vector<GidEntry>;

constexpr std::size_t kShown = 4;  // how many GIDs an error lists

std::string interface_name(std::uint32_t netdev) {
  if (netdev == 0) return "an unnamed interface";
  std::array<char, IF_NAMESIZE> name{};
  if (if_indextoname(netdev, name.data()) == nullptr) return fmt::format("interface {}", netdev);
  return name.data();
}

std::string in_words(const GidEntry& entry) {
  return fmt::format("{} ({}, port {} index {}{})", to_string(entry.gid), to_string(entry.type), entry.port,
                     entry.index, entry.netdev != 0 ? ", " + interface_name(entry.netdev) : "");
}

std::string in_words(std::span<const GidEntry> entries) {
  if (entries.empty()) return "no GID";
  std::string text;
  for (std::size_t i = 0; i < std::min(entries.size(), kShown); ++i)
    text += (i == 0 ? "" : ", ") + in_words(entries[i]);
  if (entries.size() > kShown) text += fmt::format(" and {} more", entries.size() - kShown);
  return text;
}

std::string interfaces_in_words(std::span<const GidEntry> entries) {
  std::vector<std::uint32_t> seen;
  std::string text;
  for (const GidEntry& entry : entries) {
    if (std::find(seen.begin(), seen.end(), entry.netdev) != seen.end()) continue;
    seen.push_back(entry.netdev);
    text += (text.empty() ? "" : ", ") + interface_name(entry.netdev);
  }
  return text;
}

template <class Keep>
Candidates filter(std::span<const GidEntry> entries, Keep keep) {
  Candidates kept;
  std::copy_if(entries.begin(), entries.end(), std::back_inserter(kept), keep);
  return kept;
}

enum class Scope { kLoopback, kLinkLocal, kUniqueLocal, kGlobal };

Scope scope_of(const Gid& gid) {
  if (gid.is_loopback()) return Scope::kLoopback;
  if (gid.is_ipv4_mapped()) return (gid.ipv4() >> 16) == 0xa9fe ? Scope::kLinkLocal : Scope::kGlobal;  // 169.254/16
  constexpr std::uint8_t kMulticastLinkLocal = 2;
  if (gid.is_multicast()) {
    return (gid.bytes[1] & 0x0f) <= kMulticastLinkLocal ? Scope::kLinkLocal : Scope::kGlobal;
  }
  if (gid.is_link_local()) return Scope::kLinkLocal;
  return gid.is_unique_local() ? Scope::kUniqueLocal : Scope::kGlobal;
}

const char* family_of(const Gid& gid) {
  if (gid.is_ipv4_mapped()) return "IPv4";
  return gid.is_link_local() ? "link-local IPv6" : "IPv6";
}

// What makes one candidate better than another, best first; larger is better.
struct Merit {
  bool is_v2;
  bool is_preferred;  // the address that the kernel would send from
  bool same_scope;
  Scope scope;
  std::int64_t place;  // lower index, larger

  auto as_tuple() const { return std::tie(is_v2, is_preferred, same_scope, scope, place); }
};

Merit merit_of(const GidEntry& entry, const Gid& destination, const Route& route) {
  return {.is_v2 = entry.type == GidType::kRoceV2,
          .is_preferred = !route.source.is_zero() && entry.gid == route.source,
          .same_scope = scope_of(entry.gid) == scope_of(destination),
          .scope = scope_of(entry.gid),
          .place = -static_cast<std::int64_t>(entry.index)};
}

std::string reason_of(const GidEntry& best, const GidEntry* second, const SourceQuery& query, const Route& route) {
  if (!query.source.is_zero()) return "it is the source asked for";
  if (second == nullptr) return "it is the only one that fits";
  const Merit a = merit_of(best, query.destination, route);
  const Merit b = merit_of(*second, query.destination, route);
  if (a.is_v2 != b.is_v2) return "RoCE v2 goes before v1";
  if (a.is_preferred) return "the kernel would send from this address";
  if (a.same_scope != b.same_scope) return "its scope is the destination's";
  if (a.scope != b.scope) return "its scope is the widest";
  return "it has the lowest index of those that fit equally";
}

SourceChoice choose_best(Candidates candidates, const SourceQuery& query, const Route& route) {
  std::stable_sort(candidates.begin(), candidates.end(), [&](const GidEntry& a, const GidEntry& b) {
    return merit_of(a, query.destination, route).as_tuple() > merit_of(b, query.destination, route).as_tuple();
  });
  std::string way;
  if (route.local) {
    way = "the destination is on this host";
  } else if (route.netdev != 0) {
    way = fmt::format("the route leaves by {}", interface_name(route.netdev));
  } else {
    way = "no route was needed";
  }
  const GidEntry& best = candidates.front();
  std::string reason = fmt::format("from {}: {}; {}", in_words(best), way,
                                   reason_of(best, candidates.size() > 1 ? &candidates[1] : nullptr, query, route));
  return {.entry = best,
          .route = route,
          .explanation = fmt::format("to {} {}", to_string(query.destination), reason),
          .reason = std::move(reason)};
}

// Those whose family, scope, address and interface fit, without asking for a route.
Result<Candidates> fitting(std::span<const GidEntry> table, const SourceQuery& query) {
  const Gid& destination = query.destination;
  const Candidates of_port =
      filter(table, [&](const GidEntry& entry) { return query.port == 0 || entry.port == query.port; });
  if (of_port.empty()) {
    return failure(ErrorCode::kNotFound,
                   fmt::format("port {} has no GID in this network namespace; bring its interface up and give it an "
                               "address, or attach a network interface of the device to this container",
                               query.port));
  }
  Candidates fit = filter(of_port, [&](const GidEntry& entry) {
    return entry.gid.is_ipv4_mapped() == destination.is_ipv4_mapped() && entry.type != GidType::kInfiniBand;
  });
  if (!destination.is_ipv4_mapped() && !destination.is_multicast()) {
    fit = filter(fit, [&](const GidEntry& entry) { return entry.gid.is_link_local() == destination.is_link_local(); });
  }
  if (fit.empty()) {
    return failure(ErrorCode::kUnreachable,
                   fmt::format("destination {} is {}, and no source of that kind is there: the port has {}; use an "
                               "address of the same kind at both ends",
                               to_string(destination), family_of(destination), in_words(of_port)));
  }
  if (!query.source.is_zero()) {
    Candidates named = filter(fit, [&](const GidEntry& entry) { return entry.gid == query.source; });
    if (named.empty()) {
      return failure(ErrorCode::kNotFound,
                     fmt::format("source {} is not a GID of the port, or not of the destination's "
                                 "kind; there {}: {}",
                                 to_string(query.source), fit.size() == 1 ? "is" : "are", in_words(fit)));
    }
    fit = std::move(named);
  }
  if (query.netdev != 0) {
    Candidates there =
        filter(fit, [&](const GidEntry& entry) { return entry.netdev == query.netdev || entry.netdev == 0; });
    if (there.empty()) {
      return failure(ErrorCode::kNotFound,
                     fmt::format("{} has no GID that fits {}; there {}: {}", interface_name(query.netdev),
                                 to_string(destination), fit.size() == 1 ? "is" : "are", in_words(fit)));
    }
    fit = std::move(there);
  }
  return fit;
}

Candidates on_interface(const Candidates& candidates, std::uint32_t netdev) {
  return filter(candidates, [&](const GidEntry& entry) { return entry.netdev == netdev || entry.netdev == 0; });
}

// Nothing comes back to a loopback address from another host.
Candidates without_loopback(const Candidates& candidates) {
  return filter(candidates, [](const GidEntry& entry) { return !entry.gid.is_loopback(); });
}

// A route by one of the candidates' own interfaces, in the order of the table.
Result<SourceChoice> choose_by_interface(const Candidates& candidates, const SourceQuery& query,
                                         const RouteLookup& routes, Error otherwise) {
  std::vector<std::uint32_t> tried;
  for (const GidEntry& entry : candidates) {
    if (entry.netdev == 0 || std::find(tried.begin(), tried.end(), entry.netdev) != tried.end()) continue;
    tried.push_back(entry.netdev);
    const Result<Route> route = routes(query.destination, entry.netdev);
    if (route && (route->local || route->netdev == entry.netdev)) {
      Candidates there = on_interface(route->local ? candidates : without_loopback(candidates), entry.netdev);
      if (!there.empty()) return choose_best(std::move(there), query, *route);
    }
  }
  return tl::make_unexpected(std::move(otherwise));
}

Result<SourceChoice> choose_routed(const Candidates& candidates, const SourceQuery& query, const RouteLookup& routes) {
  const bool needs_interface = query.destination.is_link_local() && query.netdev == 0;
  if (needs_interface &&
      std::any_of(candidates.begin(), candidates.end(), [](const GidEntry& entry) { return entry.netdev != 0; })) {
    return choose_by_interface(candidates, query, routes,
                               Error{ErrorCode::kUnreachable, 0,
                                     fmt::format("no route to link-local {} by {}; name the interface it is on",
                                                 to_string(query.destination), interfaces_in_words(candidates))});
  }
  const Result<Route> route = routes(query.destination, query.netdev);
  if (!route && query.netdev != 0) {
    // An address of this host may be another interface's than the one named.
    const Result<Route> any = routes(query.destination, 0);
    if (any && any->local) return choose_best(candidates, query, *any);
  }
  if (!route) return choose_by_interface(candidates, query, routes, route.error());
  if (route->local) return choose_best(candidates, query, *route);
  Candidates on_route = on_interface(without_loopback(candidates), route->netdev);
  if (!on_route.empty()) return choose_best(std::move(on_route), query, *route);
  return choose_by_interface(
      candidates, query, routes,
      Error{
          ErrorCode::kUnreachable, 0,
          fmt::format("the route to {} leaves by {}, and the port's addresses are on {}; use the device of {}, or add "
                      "a route by the other",
                      to_string(query.destination), interface_name(route->netdev), interfaces_in_words(candidates),
                      interface_name(route->netdev))});
}

bool same_subnet(const Gid& a, const Gid& b) {
  constexpr std::size_t kPrefixBytes = 8;
  return std::equal(a.bytes.begin(), a.bytes.begin() + kPrefixBytes, b.bytes.begin());
}

// InfiniBand: the GID with the destination's subnet prefix, else the first; the fabric routes by LID.
Result<SourceChoice> choose_infiniband(std::span<const GidEntry> table, const SourceQuery& query) {
  const Candidates fit = filter(table, [&](const GidEntry& entry) {
    return entry.type == GidType::kInfiniBand && (query.port == 0 || entry.port == query.port) &&
           (query.source.is_zero() || entry.gid == query.source);
  });
  if (fit.empty()) {
    return failure(ErrorCode::kNotFound, fmt::format("no GID fits port {} and the source asked for; there are: {}",
                                                     query.port, in_words(table)));
  }
  const auto same = std::find_if(fit.begin(), fit.end(),
                                 [&](const GidEntry& entry) { return same_subnet(entry.gid, query.destination); });
  const GidEntry& best = same != fit.end() ? *same : fit.front();
  const char* const reason = !query.source.is_zero() ? "it is the source asked for"
                             : same != fit.end()     ? "it is of the destination's subnet"
                                                     : "none is of the destination's subnet, so the port's first; a "
                                                       "router of the fabric must join the two";
  return SourceChoice{
      .entry = best,
      .route = {},
      .explanation = fmt::format("to {} from {}: {}", to_string(query.destination), in_words(best), reason),
      .reason = fmt::format("from {}: {}", in_words(best), reason)};
}

}  // namespace

Result<SourceChoice> choose_source(std::span<const GidEntry> table, const SourceQuery& query,
                                   const RouteLookup& routes) {
  if (query.destination.is_zero()) {
    return failure(ErrorCode::kInvalidArgument,
                   "the destination GID is zero: on RoCE it is the IP address of the peer; check that the peer had an "
                   "address when it told its GID");
  }
  const bool infiniband = std::any_of(table.begin(), table.end(), [&](const GidEntry& entry) {
    return entry.type == GidType::kInfiniBand && (query.port == 0 || entry.port == query.port);
  });
  if (infiniband) return choose_infiniband(table, query);
  Result<Candidates> candidates = fitting(table, query);
  if (!candidates) return tl::make_unexpected(candidates.error());
  if (query.destination.is_multicast()) return choose_best(std::move(*candidates), query, Route{});
  return choose_routed(*candidates, query, routes);
}

}  // namespace verbena
