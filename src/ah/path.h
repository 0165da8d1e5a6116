// How an address leaves this host: what many destinations have in common, kept once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "verbena/gid_table.h"

namespace verbena::ah {

struct Path {
  GidEntry source;  // zero where the address has no GRH
  Gid gateway;      // zero: the destination itself is the next hop
  std::uint32_t netdev = 0;
  bool has_next_hop = false;  // false: multicast, this host, a LID
  std::string reason;         // why this source, after the destination's name

  auto as_tuple() const {
    return std::tie(source.gid.bytes, source.type, source.port, source.index, source.netdev, gateway.bytes, netdev,
                    has_next_hop, reason);
  }
  friend bool operator<(const Path& a, const Path& b) { return a.as_tuple() < b.as_tuple(); }
};

// Thread-safety: under Core's mutex; a path that is taken is constant.
// Ownership:     owns the paths; one is there from its first take() to its last give_back().
// Errors:        none.
class Paths {
 public:
  const Path* take(Path path) {
    const auto found = users_.try_emplace(std::move(path), 0).first;
    ++found->second;
    return &found->first;
  }
  void give_back(const Path* path) {
    const auto found = users_.find(*path);
    if (--found->second == 0) users_.erase(found);
  }
  std::size_t size() const noexcept { return users_.size(); }

 private:
  std::map<Path, std::size_t> users_;
};

}  // namespace verbena::ah
