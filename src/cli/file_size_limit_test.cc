#include "cli/file_size_limit.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/counter_page.h"

namespace verbena::cli {
namespace {

using testing::HasSubstr;

TEST(FileSizeLimit, IsTooSmallWhereTheSharedMemoryIsLarger) {
  for (const std::uint64_t limit :
       {std::uint64_t{0}, std::uint64_t{1024}, std::uint64_t{host::kCounterPageBytes - 1}}) {
    const std::string why = file_size_shortage(limit);
    EXPECT_THAT(why, HasSubstr("File too large"));
    EXPECT_THAT(why, HasSubstr("files of " + std::to_string(limit) + " bytes"));
    EXPECT_THAT(why, HasSubstr("ulimit -f"));
  }
  EXPECT_EQ(file_size_shortage(host::kCounterPageBytes), "");
  EXPECT_EQ(file_size_shortage(std::numeric_limits<std::uint64_t>::max()), "");
}

}  // namespace
}  // namespace verbena::cli
