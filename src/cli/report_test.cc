// What ping and demo print.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/demo_report.h"
#include "cli/ping_report.h"
#include "cli/progress_bar.h"

namespace verbena::cli {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

PingReport ping_example() {
  PingReport report;
  report.server = "node7";
  report.device = "verbena0";
  report.netdev = "eth0";
  report.source = "::ffff:10.0.0.1";
  report.destination = "::ffff:10.0.0.7";
  report.size = 64;
  report.window = 1;
  report.counts.sent = 1000;
  report.counts.received = 990;
  report.lost = 10;
  report.elapsed = 2s;
  for (int i = 1; i <= 990; ++i) report.latency.add(Duration(i * 1000));
  report.directory.created = 1;
  report.directory.hits = 1000;
  report.directory.misses = 1;
  return report;
}

TEST(PingReport, SaysWhatHappened) {
  const std::string text = render_ping_summary(ping_example());
  EXPECT_THAT(text, HasSubstr("1,000 sent, 990 received, 10 lost (1.00%), in 2.00 s"));
  EXPECT_THAT(text, HasSubstr("min 1.00 us"));
  EXPECT_THAT(text, HasSubstr("max 990 us"));
  EXPECT_THAT(text, HasSubstr("495/s round trips"));
  EXPECT_THAT(text, HasSubstr("1 address handle created, 1,000 hits, 1 miss"));
  EXPECT_THAT(text, Not(HasSubstr("late")));
}

TEST(PingReport, SaysWhichPortWasTakenWhereTheDeviceHasSeveral) {
  PingReport report = ping_example();
  EXPECT_THAT(render_ping_heading(report), HasSubstr("verbena0 (eth0) "));
  report.port = 2;
  report.has_more_ports = true;
  EXPECT_THAT(render_ping_heading(report), HasSubstr("verbena0 port 2 (eth0) "));
  EXPECT_EQ(ping_to_json(report)["port"], 2);
}

TEST(PingReport, TellsNoLatencyWhereNothingCameBack) {
  PingReport report = ping_example();
  report.counts.received = 0;
  report.lost = 1000;
  report.latency = {};
  const std::string text = render_ping_summary(report);
  EXPECT_THAT(text, HasSubstr("1,000 lost (100%)"));
  EXPECT_THAT(text, Not(HasSubstr("round trip min")));
}

TEST(PingReport, WhatHadNoAddressHandleIsToldApartAndWhy) {
  PingReport report = ping_example();
  EXPECT_THAT(render_ping_summary(report), Not(HasSubstr("not sent")));
  report.counts.unsent = 7;
  report.unsent_why = "the source is gone";
  const std::string text = render_ping_summary(report);
  EXPECT_THAT(text, HasSubstr("1,000 sent, 990 received, 10 lost (1.00%)"));
  EXPECT_THAT(text, HasSubstr("7 not sent: no address handle (the source is gone)"));
  EXPECT_EQ(ping_to_json(report)["not_sent"], 7);
  EXPECT_EQ(ping_to_json(report)["not_sent_why"], "the source is gone");
}

TEST(PingReport, JsonHasItsKeys) {
  const auto json = ping_to_json(ping_example());
  EXPECT_EQ(json["sent"], 1000);
  EXPECT_EQ(json["received"], 990);
  EXPECT_EQ(json["lost"], 10);
  EXPECT_DOUBLE_EQ(json["loss_percent"], 1.0);
  EXPECT_DOUBLE_EQ(json["rate_per_s"], 495.0);
  EXPECT_EQ(json["round_trip_ns"]["min"], 1000);
  EXPECT_EQ(json["round_trip_ns"]["max"], 990000);
  for (const char* key : {"mean", "p50", "p99", "p999"}) EXPECT_TRUE(json["round_trip_ns"][key].is_number()) << key;
  EXPECT_EQ(json["directory"]["created"], 1);
  EXPECT_EQ(json["directory"]["hits"], 1000);
}

TEST(PingReport, NoTimeIsNoRate) {
  EXPECT_EQ(rate_of(1000, 0ns), 0);
}

DemoReport demo_example() {
  DemoReport report;
  report.device = "verbena0";
  report.destinations = 16;
  report.window = 64;
  report.create_per_send.sent = report.directory.sent = 40000;
  report.create_per_send.create_calls = 40000;
  report.directory.create_calls = 16;
  report.create_per_send.address_cost = 1900ns;
  report.directory.address_cost = 12ns;
  report.create_per_send.latency.add(6000ns);
  report.directory.latency.add(4000ns);
  report.create_per_send.rate_alone = 100'000;
  report.directory.rate_alone = 150'000;
  report.hits = 40000;
  report.misses = 16;
  return report;
}

TEST(DemoReport, SetsTheTwoWaysSideBySide) {
  const std::string text = render_demo(demo_example(), false);
  EXPECT_THAT(text, HasSubstr("2500 x fewer"));
  EXPECT_THAT(text, HasSubstr("158 x less"));
  EXPECT_THAT(text, HasSubstr("33% less"));
  EXPECT_THAT(text, HasSubstr("50% more"));
  EXPECT_THAT(text, HasSubstr("verbena run -- ibv_devinfo"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(DemoReport, SaysSoWhereTheDirectoryIsWorse) {
  DemoReport report = demo_example();
  report.directory.latency = {};
  report.directory.latency.add(12000ns);
  report.directory.rate_alone = 50'000;
  const std::string text = render_demo(report, false);
  EXPECT_THAT(text, HasSubstr("2.0 x more"));
  EXPECT_THAT(text, HasSubstr("2.0 x fewer"));
}

TEST(DemoReport, CountsOneDestinationInTheSingular) {
  DemoReport report = demo_example();
  report.destinations = 1;
  report.directory.create_calls = 1;
  EXPECT_THAT(render_demo(report, false), HasSubstr("made 1 handle for 1 destination and"));
}

TEST(DemoReport, IsColoredOnlyWhenAsked) {
  EXPECT_THAT(render_demo(demo_example(), true), HasSubstr("\x1b[32m"));
}

TEST(DemoReport, JsonHasBothWays) {
  const auto json = demo_to_json(demo_example());
  EXPECT_EQ(json["create_per_send"]["create_ah_calls"], 40000);
  EXPECT_EQ(json["through_directory"]["create_ah_calls"], 16);
  EXPECT_EQ(json["directory"]["hits"], 40000);
  EXPECT_EQ(json["directory"]["misses"], 16);
}

TEST(ProgressBar, FillsAsTheRunGoesOn) {
  EXPECT_EQ(render_progress("ping", 0, 100, 1s), "ping  [........................]  0%  0 of 100  0.00/s");
  EXPECT_EQ(render_progress("ping", 50, 100, 1s), "ping  [############............]  50%  50 of 100  50.0/s  1 s left");
  EXPECT_EQ(render_progress("ping", 100, 100, 2s), "ping  [########################]  100%  100 of 100  50.0/s");
}

TEST(ProgressBar, HasNoBarWithoutAnEnd) {
  EXPECT_EQ(render_progress("ping", 1500, 0, 1s), "ping  1,500  1.50 k/s");
}

}  // namespace
}  // namespace verbena::cli
