#include "cli/text_table.h"

#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

TEST(TextTable, ColumnsAreAsWideAsTheirWidestWord) {
  TextTable table({{"NAME"}, {"COUNT", Align::kRight}, {"NOTE"}});
  table.add_row({"a", "1", "x"});
  table.add_row({"longer", "1000000", ""});
  EXPECT_EQ(table.render(),
            "NAME      COUNT  NOTE\n"
            "a             1  x\n"
            "longer  1000000\n");
}

TEST(TextTable, MissingWordsAreEmptyAndExtraOnesLeftOut) {
  TextTable table({{"A"}, {"B"}});
  table.add_row({"1"});
  table.add_row({"1", "2", "3"});
  EXPECT_EQ(table.render(1), " A  B\n 1\n 1  2\n");
}

TEST(TextTable, IsEmptyUntilARowIsAdded) {
  TextTable table({{"A"}});
  EXPECT_TRUE(table.empty());
  table.add_row({});
  EXPECT_FALSE(table.empty());
}

}  // namespace
}  // namespace verbena::cli
