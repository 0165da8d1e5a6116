#include "cli/round_trips.h"

#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

using namespace std::chrono_literals;

constexpr Instant at(std::int64_t us) {
  return {us * 1000};
}

TEST(RoundTrips, BooksAnAnswerInTime) {
  RoundTrips book(1ms);
  EXPECT_EQ(book.next_sequence(), 0U);
  EXPECT_EQ(book.on_sent(at(0)), 0U);
  EXPECT_EQ(book.outstanding(), 1U);
  book.on_reply(0, true, at(7));
  EXPECT_EQ(book.counts().received, 1U);
  EXPECT_EQ(book.lost(), 0U);
  EXPECT_EQ(book.outstanding(), 0U);
  EXPECT_EQ(book.latency().percentile(100), 7us);
}

TEST(RoundTrips, GivesUpAfterTheTimeout) {
  RoundTrips book(1ms);
  book.on_sent(at(0));
  book.on_sent(at(500));
  ASSERT_TRUE(book.next_timeout());
  EXPECT_EQ(*book.next_timeout(), at(1000));
  book.on_time(at(999));
  EXPECT_EQ(book.lost(), 0U);
  book.on_time(at(1000));
  EXPECT_EQ(book.lost(), 1U);
  EXPECT_EQ(book.outstanding(), 1U);
  EXPECT_EQ(*book.next_timeout(), at(1500));
}

TEST(RoundTrips, ALateAnswerIsLateAndNotLost) {
  RoundTrips book(1ms);
  book.on_sent(at(0));
  book.on_time(at(1000));
  book.on_reply(0, true, at(5000));
  EXPECT_EQ(book.counts().late, 1U);
  EXPECT_EQ(book.counts().received, 0U);
  EXPECT_EQ(book.lost(), 0U);
  EXPECT_EQ(book.latency().count(), 0U) << "a late answer is no measurement";
  book.on_reply(0, true, at(5001));
  EXPECT_EQ(book.counts().duplicate, 1U);
}

TEST(RoundTrips, CountsDuplicatesOnce) {
  RoundTrips book(1ms);
  book.on_sent(at(0));
  book.on_sent(at(0));
  book.on_reply(1, true, at(1));
  book.on_reply(1, true, at(2));
  book.on_reply(0, true, at(3));
  book.on_reply(0, true, at(4));
  EXPECT_EQ(book.counts(),
            (PingCounts{.sent = 2, .received = 2, .late = 0, .duplicate = 2, .corrupt = 0, .unknown = 0}));
}

TEST(RoundTrips, ACorruptAnswerIsNoAnswer) {
  RoundTrips book(1ms);
  book.on_sent(at(0));
  book.on_reply(0, false, at(1));
  EXPECT_EQ(book.counts().corrupt, 1U);
  EXPECT_EQ(book.outstanding(), 1U);
  book.on_reply(0, true, at(2));
  EXPECT_EQ(book.counts().received, 1U);
}

TEST(RoundTrips, AnAnswerToNothingIsUnknown) {
  RoundTrips book(1ms);
  book.on_reply(0, true, at(1));
  book.on_sent(at(2));
  book.on_reply(UINT64_MAX, true, at(3));
  EXPECT_EQ(book.counts().unknown, 2U);
  EXPECT_EQ(book.outstanding(), 1U);
}

TEST(RoundTrips, ARefusedSendWasNeverSent) {
  RoundTrips book(1ms);
  book.on_sent(at(0));
  book.on_sent(at(1));
  book.on_refused();
  EXPECT_EQ(book.counts().sent, 1U);
  EXPECT_EQ(book.outstanding(), 1U);
  EXPECT_EQ(book.next_sequence(), 1U) << "the number is used again";
}

TEST(RoundTrips, WhatHadNoAddressIsNeitherSentNorLost) {
  RoundTrips book(1ms);
  book.on_sent(at(0));
  book.on_sent(at(1));
  book.on_unsent();
  book.on_end();
  EXPECT_EQ(book.counts().sent, 1U);
  EXPECT_EQ(book.counts().unsent, 1U);
  EXPECT_EQ(book.lost(), 1U);
}

TEST(RoundTrips, TheEndGivesUpAll) {
  RoundTrips book(1ms);
  for (int i = 0; i < 5; ++i) book.on_sent(at(i));
  book.on_reply(2, true, at(9));
  book.on_end();
  EXPECT_EQ(book.lost(), 4U);
  EXPECT_EQ(book.outstanding(), 0U);
  EXPECT_FALSE(book.next_timeout());
}

// Whatever order answers come in, each datagram is in exactly one place of the book.
TEST(RoundTrips, EveryDatagramIsAccountedFor) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    RoundTrips book(50us);
    std::multimap<std::int64_t, std::uint64_t> replies;  // when, which
    std::int64_t time = 0;
    for (int i = 0; i < 2000; ++i) {
      time += static_cast<std::int64_t>(random() % 5);
      const std::uint64_t sequence = book.on_sent(at(time));
      for (auto copies = random() % 3; copies > 0; --copies)
        replies.emplace(time + static_cast<std::int64_t>(random() % 80), sequence);
      while (!replies.empty() && replies.begin()->first <= time) {
        book.on_reply(replies.begin()->second, random() % 10 != 0, at(time));
        replies.erase(replies.begin());
      }
      book.on_time(at(time));
      const PingCounts& counts = book.counts();
      ASSERT_EQ(counts.sent, counts.received + counts.late + book.lost() + book.outstanding());
      ASSERT_EQ(counts.received, book.latency().count());
    }
    book.on_end();
    EXPECT_EQ(book.counts().sent, 2000U);
    EXPECT_EQ(book.counts().unknown, 0U);
  }
}

}  // namespace
}  // namespace verbena::cli
