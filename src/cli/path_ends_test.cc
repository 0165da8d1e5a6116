#include "cli/path_ends.h"

#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

EffectiveAddress address(const char* source, const char* destination, std::uint16_t lid) {
  EffectiveAddress made;
  made.source.gid = *parse_gid(source);
  made.destination.gid = *parse_gid(destination);
  made.destination.lid = lid;
  return made;
}

TEST(PathEnds, AreGidsOnEthernet) {
  const PathEnds ends = path_ends(address("10.0.0.1", "10.0.0.2", 0), PortView());
  EXPECT_EQ(ends.source, "::ffff:10.0.0.1");
  EXPECT_EQ(ends.destination, "::ffff:10.0.0.2");
}

TEST(PathEnds, AreLidsOnInfiniBand) {
  PortView port;
  port.link_layer = LinkLayer::kInfiniBand;
  port.lid = 4;
  PathEnds ends = path_ends(address("::", "::", 9), port);
  EXPECT_EQ(ends.source, "LID 4");
  EXPECT_EQ(ends.destination, "LID 9");
  EffectiveAddress global = address("fe80::4", "fe80::9", 9);
  global.destination.source_path_bits = 1;
  ends = path_ends(global, port);
  EXPECT_EQ(ends.source, "LID 5 (fe80::4)");
  EXPECT_EQ(ends.destination, "LID 9 (fe80::9)");
}

}  // namespace
}  // namespace verbena::cli
