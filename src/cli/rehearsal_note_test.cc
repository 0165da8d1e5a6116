#include "cli/rehearsal_note.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

using ::testing::HasSubstr;

TEST(RehearsalNote, NamesTheSettingThatAsksForTheFailure) {
  const std::string message = "ibv_create_ah: Cannot allocate memory (ENOMEM)";
  EXPECT_THAT(rehearsal_note(message, "create_ah.fail=ENOMEM,create_ah.after=3", ""),
              HasSubstr("VERBENA_INJECT is create_ah.fail=ENOMEM,create_ah.after=3"));
  EXPECT_THAT(rehearsal_note(message, "seed=7, create_ah.fail=ENOMEM", ""), HasSubstr("VERBENA_INJECT"));
  EXPECT_THAT(rehearsal_note(message, "", "max_ah=1"), HasSubstr("VERBENA_LIMITS is max_ah=1"));
}

TEST(RehearsalNote, NamesDelaysWhereADeadlinePassed) {
  const Error late{ErrorCode::kTimedOut, 0, "no datagram came back"};
  EXPECT_THAT(rehearsal_note(late, "create_ah.delay=3s", ""), HasSubstr("VERBENA_INJECT is create_ah.delay=3s"));
  EXPECT_EQ(rehearsal_note(late, "create_ah.fail=ENOMEM", ""), "");
  const Error other{ErrorCode::kNotFound, 0, "there is no such device"};
  EXPECT_EQ(rehearsal_note(other, "create_ah.delay=3s", ""), "");
}

TEST(RehearsalNote, OtherFailuresAreNotBlamedOnIt) {
  EXPECT_EQ(rehearsal_note("ibv_create_ah: Cannot allocate memory (ENOMEM)", "", ""), "");
  EXPECT_EQ(rehearsal_note("no answer", "create_ah.fail=ENOMEM", "max_ah=1"), "");
  EXPECT_EQ(rehearsal_note("x (EINVAL)", "create_ah.fail=ENOMEM", "max_ah=1"), "");
  EXPECT_EQ(rehearsal_note("x (ENOMEM)", "create_ah.delay=1s", ""), "");
}

}  // namespace
}  // namespace verbena::cli
