#include "engine/connection.h"

#include <gtest/gtest.h>

namespace verbena::engine {
namespace {

// A path of an InfiniBand port with LIDs 8 to 9, from the second of them to LID 3, without GRH.
Connection by_lid() {
  Connection connection;
  connection.envelope.link = {.destination_lid = 3, .path_bits = 1};
  return connection;
}

Envelope arrived(std::uint16_t source, std::uint16_t destination, std::uint8_t path_bits) {
  Envelope envelope;
  envelope.link = {.source_lid = source, .destination_lid = destination, .path_bits = path_bits};
  return envelope;
}

TEST(Connection, HearsFromTheLidThatItIsConnectedTo) {
  EXPECT_TRUE(is_from_peer(by_lid(), arrived(3, 9, 1)));
  EXPECT_FALSE(is_from_peer(by_lid(), arrived(4, 9, 1)));
  EXPECT_FALSE(is_from_peer(by_lid(), arrived(3, 8, 0)));
  Envelope with_grh = arrived(3, 9, 1);
  with_grh.link.has_grh = true;
  EXPECT_FALSE(is_from_peer(by_lid(), with_grh));
}

// The other end has been told the new LID of this one; here nothing need be told.
TEST(Connection, GoesOnWhenItsOwnPortHasOtherLids) {
  EXPECT_TRUE(is_from_peer(by_lid(), arrived(3, 13, 1)));
  EXPECT_FALSE(is_from_peer(by_lid(), arrived(3, 12, 0)));
}

}  // namespace
}  // namespace verbena::engine
