#include "cli/directory_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace verbena::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

DirectorySurvey survey_of(std::uint64_t hits) {
  DirectorySurvey survey;
  DirectoryProcess& process = survey.processes.emplace_back();
  process.pid = 4711;
  process.page.process_name = "app";
  process.page.blocks.push_back({"tenant-a",
                                 {{"live", "handles", Side::kBoth, 12},
                                  {"hits", "events", Side::kBoth, hits},
                                  {"creation_us_below_2", "events", Side::kBoth, 0},
                                  {"creation_us_below_4", "events", Side::kBoth, 98},
                                  {"creation_us_below_2048", "events", Side::kBoth, 1},
                                  {"creation_us_from_8388608", "events", Side::kBoth, 1}}});
  return survey;
}

TEST(DirectoryReport, ShowsTotalsAndLatencies) {
  EXPECT_THAT(render_directories(survey_of(500)),
              AllOf(HasSubstr("app (pid 4711)"), HasSubstr("tenant-a"), HasSubstr("500"), HasSubstr("<4 us"),
                    HasSubstr("<2.05 ms"), Not(HasSubstr("hits/s"))));
}

TEST(DirectoryReport, ShowsRatesBesideAnEarlierLook) {
  const std::string text = render_directories(survey_of(1500), survey_of(500), std::chrono::seconds(2));
  EXPECT_THAT(text, AllOf(HasSubstr("hits/s"), HasSubstr(" 500 "), Not(HasSubstr("1500"))));
}

TEST(DirectoryReport, ARestartedProcessHasNoNegativeRate) {
  EXPECT_THAT(render_directories(survey_of(3), survey_of(500), std::chrono::seconds(1)), HasSubstr(" 0 "));
}

TEST(DirectoryReport, MarksADirectoryThatIsGone) {
  DirectorySurvey survey = survey_of(5);
  EXPECT_THAT(render_directories(survey), Not(HasSubstr("(ended)")));
  survey.processes[0].page.blocks[0].ended = true;
  EXPECT_THAT(render_directories(survey), HasSubstr("tenant-a (ended)"));
  EXPECT_EQ(directories_to_json(survey, Ask::kCounts)["processes"][0]["directories"][0]["ended"], true);
}

TEST(DirectoryReport, ATenantIsShownWithItsBudgetAndIsNoDirectory) {
  DirectorySurvey survey = survey_of(5);
  EXPECT_THAT(render_directories(survey), Not(HasSubstr("share")));
  survey.processes[0].page.blocks.push_back({"trainer",
                                             {{"tenant_handles_limit", "handles", Side::kBoth, 1000},
                                              {"tenant_share", "handles", Side::kBoth, 77},
                                              {"tenant_memory", "bytes", Side::kBoth, 5555},
                                              {"live", "handles", Side::kBoth, 33}}});
  EXPECT_THAT(render_directories(survey),
              AllOf(HasSubstr("trainer"), HasSubstr("33 of 1000"), HasSubstr("77"), HasSubstr("5555")));
  const auto json = directories_to_json(survey, Ask::kCounts)["processes"][0];
  EXPECT_EQ(json["directories"].size(), 1U);
  EXPECT_EQ(json["tenants"][0]["tenant"], "trainer");
  EXPECT_EQ(json["tenants"][0]["counts"]["live"], 33);
}

TEST(DirectoryReport, FindsTheBucketOfAShare) {
  const DirectorySurvey survey = survey_of(0);
  const auto& block = survey.processes[0].page.blocks[0];
  EXPECT_EQ(creation_us_at(block, 0.5), 4U);
  EXPECT_EQ(creation_us_at(block, 0.99), 2048U);
  EXPECT_EQ(creation_us_at(block, 1.0), 8388608U);
  EXPECT_FALSE(creation_us_at(host::CounterBlockReading{}, 0.5));
}

TEST(DirectoryReport, SaysWhoIsSilentAndThatNobodyIsThere) {
  DirectorySurvey survey;
  EXPECT_THAT(render_directories(survey), HasSubstr("No process"));
  survey.silent.push_back({12, "it does not answer"});
  EXPECT_THAT(render_directories(survey), AllOf(HasSubstr("pid 12: it does not answer"), Not(HasSubstr("No process"))));
}

TEST(DirectoryReport, GivesJsonForEachKindOfQuestion) {
  DirectorySurvey survey = survey_of(5);
  survey.processes[0].entries.push_back({{"destination", "::1"}});
  const auto counts = directories_to_json(survey, Ask::kCounts);
  EXPECT_EQ(counts["processes"][0]["directories"][0]["counts"]["hits"], 5);
  EXPECT_FALSE(counts["processes"][0].contains("entries"));
  const auto entries = directories_to_json(survey, Ask::kEntries);
  EXPECT_EQ(entries["processes"][0]["entries"][0]["destination"], "::1");
}

TEST(DirectoryReport, AnEntryMayNotMoveTheCursor) {
  DirectorySurvey survey = survey_of(5);
  survey.processes[0].entries.push_back({{"destination", "a\x1b[2Jb"}});
  EXPECT_THAT(render_entries(survey), AllOf(HasSubstr("a?[2Jb"), Not(HasSubstr("\x1b"))));
}

TEST(Dump, IsReadByTheNamesOfItsFirstLine) {
  const auto entries = parse_dump("a\tb\n1\t2\nonly one\n3\t4\n");
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[1].at("b"), "4");
  EXPECT_TRUE(parse_dump("").empty());
  EXPECT_TRUE(parse_dump("a\tb").empty());
}

}  // namespace
}  // namespace verbena::cli
