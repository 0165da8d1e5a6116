#include "host/counter_page.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

#include <gtest/gtest.h>

#include "base/drop.h"

namespace verbena::host {
namespace {

class Page {
 public:
  explicit Page(std::size_t bytes = kCounterPageBytes) : lines_(bytes / sizeof(Line)) {}
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(lines_)); }

 private:
  struct alignas(64) Line {
    std::byte bytes[64] = {};
  };
  std::vector<Line> lines_;
};

constexpr CounterPageOwner kOwner{.pid = 42, .start_time_ns = 1'700'000'000'000'000'000, .process_name = "ib_send_lat"};

TEST(CounterPage, ReadsBackOwnerRowsAndValues) {
  Page page;
  CounterPageWriter writer(page.bytes(), kOwner);
  auto block = writer.add_block("verbena0", kDropRows);
  ASSERT_TRUE(block);
  block->add(3);
  block->add(3, 4);
  block->add(4, 9);
  block->set(5, ~std::uint64_t{0});
  block->add(kDropCount);  // no such row

  const auto reading = read_counter_page(page.bytes());
  ASSERT_TRUE(reading) << reading.error().message;
  EXPECT_EQ(reading->pid, 42U);
  EXPECT_EQ(reading->start_time_ns, kOwner.start_time_ns);
  EXPECT_EQ(reading->process_name, "ib_send_lat");
  ASSERT_EQ(reading->blocks.size(), 1U);
  EXPECT_EQ(reading->blocks[0].name, "verbena0");
  ASSERT_EQ(reading->blocks[0].rows.size(), kDropCount);
  for (std::size_t i = 0; i < kDropCount; ++i) {
    EXPECT_EQ(reading->blocks[0].rows[i].name, kDropRows[i].name);
    EXPECT_EQ(reading->blocks[0].rows[i].unit, kDropRows[i].unit);
    EXPECT_EQ(reading->blocks[0].rows[i].side, kDropRows[i].side);
  }
  EXPECT_EQ(reading->blocks[0].rows[3].value, 5U);
  EXPECT_EQ(reading->blocks[0].rows[4].value, 9U);
  EXPECT_EQ(reading->blocks[0].rows[5].value, ~std::uint64_t{0});
  EXPECT_EQ(block->value(3), 5U);
}

TEST(CounterPage, GivesTheSameBlockForTheSameName) {
  Page page;
  CounterPageWriter writer(page.bytes(), kOwner);
  writer.add_block("verbena0", kDropRows)->add(1);
  writer.add_block("verbena1", kDropRows)->add(1, 10);
  writer.add_block("verbena0", kDropRows)->add(1);
  const auto reading = read_counter_page(page.bytes());
  ASSERT_TRUE(reading);
  ASSERT_EQ(reading->blocks.size(), 2U);
  EXPECT_EQ(reading->blocks[0].rows[1].value, 2U);
  EXPECT_EQ(reading->blocks[1].rows[1].value, 10U);
}

TEST(CounterPage, KeepsTheLastValuesOfAnEndedBlockUntilAnotherTakesItsPlace) {
  Page page;
  CounterPageWriter writer(page.bytes(), kOwner);
  const CounterBlock block = *writer.add_block("old", kDropRows);
  writer.add_block("other", kDropRows)->add(1, 3);
  writer.end_block(block);
  CounterBlock late = block;
  late.add(1, 9);
  auto reading = read_counter_page(page.bytes());
  ASSERT_TRUE(reading);
  EXPECT_TRUE(reading->blocks[0].ended);
  EXPECT_EQ(reading->blocks[0].rows[1].value, 9U);
  EXPECT_FALSE(reading->blocks[1].ended);
  ASSERT_TRUE(writer.add_block("new", kDropRows));
  reading = read_counter_page(page.bytes());
  ASSERT_TRUE(reading);
  ASSERT_EQ(reading->blocks.size(), 2U);
  EXPECT_EQ(reading->blocks[0].name, "new");
  EXPECT_FALSE(reading->blocks[0].ended);
  EXPECT_EQ(reading->blocks[0].rows[1].value, 0U);
  EXPECT_EQ(reading->blocks[1].rows[1].value, 3U);
}

TEST(CounterPage, IsNeverFullOfWhatHasEnded) {
  Page page(16384);
  CounterPageWriter writer(page.bytes(), kOwner);
  for (int i = 0; i < 1000; ++i) {
    const auto block = writer.add_block("directory " + std::to_string(i), kDropRows);
    ASSERT_TRUE(block) << i;
    writer.end_block(*block);
  }
}

TEST(CounterPage, SaysWhenItIsFullAndStaysReadable) {
  Page page(4096);
  CounterPageWriter writer(page.bytes(), kOwner);
  ASSERT_TRUE(writer.add_block("a", kDropRows));
  const auto refused = writer.add_block("b", kDropRows);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(read_counter_page(page.bytes())->blocks.size(), 1U);
}

TEST(CounterPage, RefusesABlockWithoutAProperName) {
  Page page;
  CounterPageWriter writer(page.bytes(), kOwner);
  EXPECT_EQ(writer.add_block("", kDropRows).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(writer.add_block(std::string(64, 'x'), kDropRows).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(writer.add_block(std::string(63, 'x'), kDropRows));
}

TEST(CounterPage, NamesThatATerminalShouldNotSeeAreShownWithoutThat) {
  Page page;
  CounterPageOwner owner = kOwner;
  owner.process_name = "t\xc3\xa9\n";
  CounterPageWriter writer(page.bytes(), owner);
  auto block = writer.add_block("caf\xc3\xa9\x1b[1m", kDropRows);
  ASSERT_TRUE(block);
  block->add(2, 5);
  EXPECT_EQ(writer.add_block("caf\xc3\xa9\x1b[1m", kDropRows)->value(2), 5U) << "the same one";
  ASSERT_TRUE(writer.add_block("other", kDropRows));
  const auto reading = read_counter_page(page.bytes());
  ASSERT_TRUE(reading) << reading.error().message;
  EXPECT_EQ(reading->process_name, "t???");
  ASSERT_EQ(reading->blocks.size(), 2U);
  EXPECT_EQ(reading->blocks[0].name, "caf???[1m");
}

TEST(CounterPage, CutsALongProcessName) {
  Page page;
  CounterPageWriter writer(
      page.bytes(),
      {.pid = 1,
       .start_time_ns = 0,
       .process_name = std::string_view("0123456789012345678901234567890123456789012345678901234567890123456789")});
  EXPECT_EQ(read_counter_page(page.bytes())->process_name.size(), 63U);
}

TEST(CounterPage, RefusesEveryTruncation) {
  Page page;
  CounterPageWriter writer(page.bytes(), kOwner);
  ASSERT_TRUE(writer.add_block("verbena0", kDropRows));
  for (std::size_t size = 0; size < 4096; size += 8) {
    EXPECT_FALSE(read_counter_page(page.bytes().first(size))) << size;
  }
}

TEST(CounterPage, SurvivesDamagedBytes) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Page good(4096);
  CounterPageWriter writer(good.bytes(), kOwner);
  ASSERT_TRUE(writer.add_block("verbena0", kDropRows));
  for (int round = 0; round < 2000; ++round) {
    Page bad(4096);
    std::ranges::copy(good.bytes(), bad.bytes().begin());
    for (int i = 0; i < 3; ++i) bad.bytes()[random() % 320] = static_cast<std::byte>(random());
    const auto reading = read_counter_page(bad.bytes());
    if (!reading) {
      EXPECT_EQ(reading.error().code, ErrorCode::kInvalidArgument);
    }
  }
}

}  // namespace
}  // namespace verbena::host
