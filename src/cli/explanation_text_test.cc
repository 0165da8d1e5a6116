#include "cli/explanation_text.h"

#include <cerrno>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/doctor_report.h"
#include "cli/exit_code.h"

namespace verbena::cli {
namespace {

using ::testing::HasSubstr;

std::string explained(const std::vector<std::string>& words) {
  const auto question = parse_question(words);
  return question ? render_explanation(*question, nullptr, 100) : "refused: " + question.error().message;
}

TEST(Explanation, UnderstandsEachWayOfAsking) {
  EXPECT_THAT(explained({"ibv_create_ah", "EINVAL"}), HasSubstr("Likely causes"));
  EXPECT_THAT(explained({"create_ah", "22"}), HasSubstr("ibv_create_ah: EINVAL (22)"));
  EXPECT_THAT(explained({"ibv_reg_mr", "ENOMEM"}), HasSubstr("ulimit -l"));
  EXPECT_THAT(explained({"ibv_reg_mr"}), HasSubstr("EFAULT"));
  EXPECT_THAT(explained({"ENODATA"}), HasSubstr("ibv_query_gid_ex"));
  EXPECT_THAT(explained({"ibv_dealloc_pd", "ENXIO"}), HasSubstr("ibv_dealloc_pd: ENXIO"));  // no row: the general one
  EXPECT_THAT(explained({"wc", "12"}), HasSubstr("IBV_WC_RETRY_EXC_ERR (12)"));
  EXPECT_EQ(explained({"IBV_WC_RETRY_EXC_ERR"}), explained({"wc", "retry_exc_err"}));
  EXPECT_THAT(explained({"wc", "12", "vendor", "0x81"}), HasSubstr("Vendor code 0x81: on ConnectX"));
  EXPECT_THAT(explained({"wc", "12", "vendor_err=7"}), HasSubstr("the provider's own"));
  EXPECT_THAT(explained({"event", "GID_CHANGE"}), HasSubstr("IBV_EVENT_GID_CHANGE"));
  EXPECT_THAT(explained({"IBV_EVENT_PORT_ERR"}), HasSubstr("gone down"));
}

TEST(Explanation, RefusesUnknownWordsWithTheKnownOnes) {
  EXPECT_THAT(explained({"coffee"}), HasSubstr("ibv_create_ah"));
  EXPECT_THAT(explained({"wc", "99"}), HasSubstr("IBV_WC_GENERAL_ERR"));
  EXPECT_THAT(explained({"wc"}), HasSubstr("refused"));
  EXPECT_THAT(explained({"wc", "12", "vendor", "x"}), HasSubstr("not a number"));
  EXPECT_THAT(explained({"wc", "12", "coffee"}), HasSubstr("not understood"));
  EXPECT_THAT(explained({"wc", "12", "vendor", "1", "2"}), HasSubstr("refused"));
  EXPECT_THAT(explained({"event", "coffee"}), HasSubstr("IBV_EVENT_CQ_ERR"));
  EXPECT_THAT(explained({"ibv_create_ah", "EFOO"}), HasSubstr("no errno"));
  EXPECT_THAT(explained({"ibv_create_ah", "EINVAL", "coffee=1"}), HasSubstr("hop_limit"));
  EXPECT_THAT(explained({"EINVAL", "ibv_create_ah"}), HasSubstr("refused"));
  EXPECT_THAT(explained({}), HasSubstr("explain what?"));
}

TEST(Explanation, JsonHasCausesAndVerdicts) {
  const auto question = parse_question({"ibv_create_ah", "EINVAL", "is_global=0", "link_layer=ethernet"});
  ASSERT_TRUE(question);
  const auto json = explanation_to_json(*question, nullptr);
  EXPECT_FALSE(json.at("causes").empty());
  EXPECT_EQ(json.at("attributes").at(0).at("verdict"), "WRONG");
}

TEST(DoctorReport, ExitsByTheWorstFinding) {
  EXPECT_EQ(exit_code_of({}), kExitOk);
  EXPECT_EQ(exit_code_of({{.check = "a"}, {.check = "b", .severity = Severity::kNote}}), kExitOk);
  EXPECT_EQ(exit_code_of({{.check = "a", .severity = Severity::kWarning}}), kExitWarning);
  EXPECT_EQ(
      exit_code_of({{.check = "a", .severity = Severity::kFailure}, {.check = "b", .severity = Severity::kWarning}}),
      kExitFailed);
}

TEST(DoctorReport, ShowsCauseAndRemedyAndCounts) {
  const std::vector<Finding> findings{{.check = "memlock", .evidence = "64 KiB"},
                                      {.check = "route",
                                       .severity = Severity::kFailure,
                                       .subject = "node7",
                                       .evidence = "none",
                                       .cause = "no route\x1b[2J",
                                       .remedy = "add one"}};
  const std::string all = render_findings(findings, {});
  EXPECT_THAT(all, HasSubstr("good      memlock"));
  EXPECT_THAT(all, HasSubstr("node7: none"));
  EXPECT_THAT(all, HasSubstr("do:  add one"));
  EXPECT_THAT(all, HasSubstr("1 good, 0 notes, 0 warnings, 1 failure"));
  EXPECT_EQ(all.find('\x1b'), std::string::npos);
  EXPECT_EQ(render_findings(findings, {.problems_only = true}).find("memlock"), std::string::npos);
  EXPECT_EQ(findings_to_json(findings, "").at("worst"), "failure");
}

TEST(DoctorReport, WrapsBetweenWords) {
  EXPECT_EQ(wrapped("one two three", 2, 9), "one two\n  three");
  EXPECT_EQ(wrapped("averyveryverylongword x", 0, 5), "averyveryverylongword\nx");
}

}  // namespace
}  // namespace verbena::cli
