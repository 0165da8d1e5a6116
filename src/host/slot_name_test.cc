#include "host/slot_name.h"

#include <set>

#include <gtest/gtest.h>

namespace verbena::host {
namespace {

using namespace std::string_view_literals;

TEST(SlotName, IsAbstractAndVersioned) {
  EXPECT_EQ(slot_name(Slot(7)), "\0verbena/1/slot/7"sv);
  EXPECT_EQ(slot_name(Slot(255)), "\0verbena/1/slot/255"sv);
}

TEST(SlotName, ReadsBackEverySlot) {
  for (unsigned n = kFirstSlot; n <= kLastSlot; ++n) {
    const Slot slot(static_cast<std::uint8_t>(n));
    EXPECT_EQ(parse_slot_name(slot_name(slot)), slot);
  }
}

TEST(SlotName, RefusesWhatItWouldNotWrite) {
  for (const auto name :
       {""sv, "verbena/1/slot/7"sv, "\0verbena/1/slot/"sv, "\0verbena/1/slot/0"sv, "\0verbena/1/slot/256"sv,
        "\0verbena/1/slot/07"sv, "\0verbena/1/slot/7 "sv, "\0verbena/1/slot/7\0"sv, "\0verbena/1/slot/-1"sv,
        "\0verbena/2/slot/7"sv, "\0verbena/1/slot/99999999999999999999"sv, "@verbena/1/slot/7"sv}) {
    EXPECT_FALSE(parse_slot_name(name)) << name;
  }
}

TEST(SlotName, SearchTriesEverySlotOnceAndNeverTheManagementSlot) {
  for (const std::uint32_t offset : {0U, 1U, 254U, 255U, 4711U, 0xffffffffU}) {
    std::set<Slot> tried;
    for (unsigned i = 0; i < kSlotCount; ++i) tried.insert(slot_to_try(offset, i));
    EXPECT_EQ(tried.size(), kSlotCount);
    EXPECT_FALSE(tried.contains(kManagementSlot));
  }
}

TEST(UnixSocketLine, FindsTheListeningSocketOfASlot) {
  const auto listing =
      parse_unix_socket_line("0000000000000000: 00000002 00000000 00010000 0005 01 4026531 @verbena/1/slot/12\n");
  ASSERT_TRUE(listing);
  EXPECT_EQ(*listing, (SlotListing{Slot(12), 4026531}));
}

TEST(UnixSocketLine, PassesOverWhatIsNoListeningSlot) {
  for (const auto* line : {
           "",
           "Num       RefCount Protocol Flags    Type St Inode Path",
           "0000000000000000: 00000003 00000000 00000000 0005 03 4026532 @verbena/1/slot/12",  // a connection
           "0000000000000000: 00000002 00000000 00010000 0001 01 11 /run/verbena/1/slot/12",
           "0000000000000000: 00000002 00000000 00010000 0001 01 11",
           "0000000000000000: 00000002 00000000 00010000 0005 01 x @verbena/1/slot/12",
           "0000000000000000: 00000002 00000000 flags 0005 01 11 @verbena/1/slot/12",
           "0000000000000000: 00000002 00000000 00010000 0005 01 11 @verbena/1/slot/0",
       }) {
    EXPECT_FALSE(parse_unix_socket_line(line)) << line;
  }
}

}  // namespace
}  // namespace verbena::host
