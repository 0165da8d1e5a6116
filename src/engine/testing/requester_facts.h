// What the tests of a requester have in common: PSNs counted from its first, and what it completes.
#pragma once

#include <cstdint>

#include <gtest/gtest.h>

#include "engine/testing/connection_bench.h"

namespace verbena::engine::testing::requester {

inline constexpr std::uint32_t kFirst = ConnectionBench::kSendPsn;
inline constexpr std::uint32_t kMtu = ConnectionBench::kMtu;

// The PSN `count` after the first.
inline std::uint32_t psn(std::uint32_t count) {
  return (kFirst + count) & Psn::kMask;
}

inline void expect_completion(ConnectionBench& bench, std::uint64_t wr_id, WcStatus status) {
  const auto completion = bench.sent();
  ASSERT_TRUE(completion) << wr_id;
  EXPECT_EQ(completion->wr_id, wr_id);
  EXPECT_EQ(completion->status, status);
}

}  // namespace verbena::engine::testing::requester
