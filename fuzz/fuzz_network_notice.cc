// The reader of rtnetlink notices, over anything: what it makes of them is always a change that a directory can apply.
#include <cstdint>
#include <span>

#include "rdma/network_notice.h"
#include "require.h"

namespace {

void check(const verbena::NetworkChange& change) {
  using Kind = verbena::NetworkChange::Kind;
  using verbena::fuzz::require;
  require(change.prefix_length <= 128, "a prefix is no longer than an address");
  require(!change.address || !change.address->is_multicast(), "nothing of a group is told");
  require(change.kind != Kind::kNeighbour || change.address, "a neighbour has an address");
  require(change.kind != Kind::kAddress || change.address, "an address is told");
  require(change.kind != Kind::kLost, "only the socket tells of losses");
  require(!change.removed || change.kind != Kind::kNeighbour || !change.mac, "a neighbour that is gone has no MAC");
  static_cast<void>(change.concerns(verbena::Gid::from_ipv4(0x0a000001)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  verbena::rdma::read_notices(std::span(data, size), check);
  return 0;
}
