#include "cli/drop_report.h"

#include <map>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/json_text.h"

namespace verbena::cli {
namespace {

constexpr std::int64_t kStart = 1'000'000'000'000;

CounterSurvey example(std::uint64_t dropped) {
  ProcessCounters process;
  process.pid = 4711;
  process.slots = {Slot(3), Slot(9)};
  process.page.process_name = "ib_send_bw";
  process.page.start_time_ns = kStart;
  process.page.blocks.push_back({"verbena0",
                                 {{"no_receive_request", "packets", Side::kReceiver, dropped},
                                  {"icrc_mismatch", "packets", Side::kReceiver, 0},
                                  {"packets_sent", "packets", Side::kSender, 1000}}});
  CounterSurvey survey;
  survey.processes.push_back(process);
  return survey;
}

const ReportStyle kShort{false, kStart + 5'000'000'000};

TEST(DropReport, KnowsEachDropButNone) {
  EXPECT_EQ(find_drop("none"), nullptr);
  EXPECT_EQ(find_drop("packets_sent"), nullptr);
  for (std::size_t i = 1; i < kDropRows.size(); ++i) EXPECT_EQ(find_drop(kDropRows[i].name), &kDropRows[i]);
}

TEST(DropReport, ShowsWhatIsNotZeroAndWhatItMeans) {
  const std::string text = render_drops(example(12), kShort);
  EXPECT_NE(text.find("ib_send_bw (pid 4711, running for 5.00 s)"), std::string::npos) << text;
  EXPECT_NE(text.find("no_receive_request     12"), std::string::npos) << text;
  EXPECT_NE(text.find(std::string(row_of(Drop::kNoReceiveRequest).doc)), std::string::npos) << text;
  EXPECT_EQ(text.find("icrc_mismatch"), std::string::npos) << text;
  EXPECT_NE(text.find("packets_sent"), std::string::npos) << text;
}

TEST(DropReport, ShowsZerosWhenAsked) {
  const std::string text = render_drops(example(0), {true, kStart});
  EXPECT_NE(text.find("icrc_mismatch"), std::string::npos) << text;
}

TEST(DropReport, SaysThatNothingWasDropped) {
  const std::string text = render_drops(example(0), kShort);
  EXPECT_NE(text.find("nothing dropped"), std::string::npos) << text;
}

TEST(DropReport, SaysThatThereIsNobody) {
  EXPECT_EQ(render_drops({}, kShort), "No process in this network namespace uses the software RNIC.\n");
}

TEST(DropReport, TellsRatesAgainstTheSurveyBefore) {
  const std::string text = render_drops(example(30), kShort, example(10), std::chrono::seconds(2));
  EXPECT_NE(text.find("10.0/s"), std::string::npos) << text;
}

TEST(DropReport, TellsNoRateOfAProcessThatIsNew) {
  CounterSurvey before = example(10);
  before.processes[0].page.start_time_ns = kStart - 1;  // the pid was another process' then
  const std::string text = render_drops(example(30), kShort, before, std::chrono::seconds(2));
  EXPECT_EQ(text.find("/s"), std::string::npos) << text;
}

TEST(DropReport, NamesSilentProcesses) {
  CounterSurvey survey;
  survey.silent.push_back({Slot(7), 99, "it does not answer"});
  survey.silent.push_back({Slot(8), 0, "why\x1b[2J"});
  const std::string text = render_drops(survey, kShort);
  EXPECT_NE(text.find("slot 7 (pid 99) gave no counters: it does not answer"), std::string::npos) << text;
  EXPECT_NE(text.find("slot 8 (a process) gave no counters: why?[2J"), std::string::npos) << text;
}

TEST(DropReport, AProcessNameCannotCommandTheTerminal) {
  CounterSurvey survey = example(1);
  survey.processes[0].page.process_name = "evil\x1b]0;x\a\n";
  survey.processes[0].page.blocks[0].rows[0].name = "row\x1b[31m";
  const std::string text = render_drops(survey, kShort);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\a'), std::string::npos);
}

TEST(DropReport, JsonHasEveryRowAndTellsDropsFromCounters) {
  const auto json = drops_to_json(example(12));
  const auto expected = nlohmann::json::parse(R"({
    "processes": [{"pid": 4711, "process": "ib_send_bw", "slots": [3, 9], "started_ns": 1000000000000, "devices": [{
      "device": "verbena0",
      "drops": {"no_receive_request": 12, "icrc_mismatch": 0},
      "counters": {"packets_sent": 1000}}]}],
    "silent": []})");
  EXPECT_EQ(json, expected) << json.dump(2);
}

TEST(DropReport, JsonSurvivesNamesThatAreNoText) {
  CounterSurvey survey = example(1);
  survey.processes[0].page.process_name = "\xff\xfe";
  EXPECT_FALSE(json_text(drops_to_json(survey)).empty());
  EXPECT_EQ(json_line(drops_to_json(survey)).find('\n'), std::string::npos);
}

TEST(DropReport, CountsDropsOfAllProcessesThatAreNotZero) {
  CounterSurvey survey = example(12);
  survey.processes.push_back(survey.processes[0]);
  EXPECT_EQ(counted_drops(survey), (std::map<std::string, std::uint64_t>{{"no_receive_request", 24}}));
}

TEST(DropReport, OneProcessOnly) {
  CounterSurvey survey = example(1);
  survey.silent.push_back({Slot(7), 99, "it does not answer"});
  EXPECT_EQ(only_process(survey, 4711).processes.size(), 1U);
  EXPECT_TRUE(only_process(survey, 4711).silent.empty());
  EXPECT_EQ(only_process(survey, 99).silent.size(), 1U);
  EXPECT_TRUE(only_process(survey, 1).processes.empty());
}

}  // namespace
}  // namespace verbena::cli
