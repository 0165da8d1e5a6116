#include "sim/stream.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include <gtest/gtest.h>

namespace verbena::sim {
namespace {

using namespace engine;

constexpr std::uint32_t kWord = 8;
constexpr std::uint32_t kInlineMost = 200;

bool takes_receive(SendOpcode opcode) {
  return opcode == SendOpcode::kSend || opcode == SendOpcode::kSendWithImmediate ||
         opcode == SendOpcode::kRdmaWriteWithImmediate;
}
bool is_atomic(SendOpcode opcode) {
  return opcode == SendOpcode::kCompareSwap || opcode == SendOpcode::kFetchAdd;
}
bool changes_memory(SendOpcode opcode) {
  return opcode == SendOpcode::kRdmaWrite || opcode == SendOpcode::kRdmaWriteWithImmediate || is_atomic(opcode) ||
         opcode == SendOpcode::kAtomicWrite;
}
bool reads_memory(SendOpcode opcode) {
  return opcode == SendOpcode::kRdmaRead || is_atomic(opcode);
}

WcOpcode completion_of(SendOpcode opcode) {
  switch (opcode) {
    case SendOpcode::kRdmaWrite:
    case SendOpcode::kRdmaWriteWithImmediate:
      return WcOpcode::kRdmaWrite;
    case SendOpcode::kRdmaRead:
      return WcOpcode::kRdmaRead;
    case SendOpcode::kCompareSwap:
      return WcOpcode::kCompareSwap;
    case SendOpcode::kFetchAdd:
      return WcOpcode::kFetchAdd;
    case SendOpcode::kFlush:
      return WcOpcode::kFlush;
    case SendOpcode::kAtomicWrite:
      return WcOpcode::kAtomicWrite;
    default:
      return WcOpcode::kSend;
  }
}

std::vector<std::byte> gathered(std::span<const std::span<std::byte>> pieces, std::size_t length) {
  std::vector<std::byte> bytes;
  for (const auto piece : pieces) {
    const auto part = piece.first(std::min(piece.size(), length - bytes.size()));
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return bytes;
}

std::uint64_t word_at(const std::byte* at) {
  std::uint64_t value = 0;
  std::memcpy(&value, at, kWord);
  return value;
}

}  // namespace

std::size_t Stream::memory_for(std::uint32_t longest, std::uint32_t depth) {
  return (std::size_t{longest} + kWord + Station::kGuardSize) * (std::size_t{depth} + kPlaces);
}

Stream::Stream(Station& from, Station& to, std::size_t connection, std::uint32_t longest)
    : from_(from),
      to_(to),
      connection_(connection),
      longest_(longest),
      local_(from.take_memory(std::size_t{longest} * from.agreement(connection).depth)),
      remote_(to.take_memory(std::size_t{longest} * kPlaces)),
      grant_(to.grant(remote_)) {
  std::fill(remote_.begin(), remote_.end(), std::byte{0});
  model_.assign(remote_.begin(), remote_.end());
}

// --- posting

SendOpcode Stream::choose(std::mt19937_64& random) const {
  constexpr std::array<SendOpcode, 4> kUnreliable{SendOpcode::kSend, SendOpcode::kSendWithImmediate,
                                                  SendOpcode::kRdmaWrite, SendOpcode::kRdmaWriteWithImmediate};
  constexpr std::array<SendOpcode, 12> kReliable{SendOpcode::kSend,
                                                 SendOpcode::kSendWithImmediate,
                                                 SendOpcode::kRdmaWrite,
                                                 SendOpcode::kRdmaWrite,
                                                 SendOpcode::kRdmaWriteWithImmediate,
                                                 SendOpcode::kRdmaRead,
                                                 SendOpcode::kRdmaRead,
                                                 SendOpcode::kCompareSwap,
                                                 SendOpcode::kFetchAdd,
                                                 SendOpcode::kFlush,
                                                 SendOpcode::kAtomicWrite,
                                                 SendOpcode::kSend};
  return reliable() ? kReliable[random() % kReliable.size()] : kUnreliable[random() % kUnreliable.size()];
}

// Mostly short; some right at the ends of packets, some longer than the window, some of nothing.
std::uint32_t Stream::choose_length(std::mt19937_64& random) const {
  const std::uint32_t mtu = from_.agreement(connection_).mtu;
  std::uint64_t length = 0;
  switch (random() % 8) {
    case 0:
      break;
    case 1:
      length = mtu * (1 + random() % 4) + random() % 3 - 1;
      break;
    case 2:
      length = random() % (longest_ + 1);
      break;
    case 3:
      length = random() % (mtu * 3);
      break;
    default:
      length = random() % 64;
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(length, longest_));
}

std::vector<std::span<std::byte>> Stream::cut(std::span<std::byte> buffer, std::size_t length,
                                              std::mt19937_64& random) const {
  const std::size_t count = 1 + random() % 4;
  std::vector<std::span<std::byte>> pieces;
  std::size_t at = 0;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    const std::size_t size = random() % (length - at + 1);
    pieces.push_back(buffer.subspan(at, size));
    at += size;
  }
  pieces.push_back(buffer.subspan(at, length - at));
  std::shuffle(pieces.begin(), pieces.end(), random);
  return pieces;
}

void Stream::fill(Posted& posted, std::mt19937_64& random, std::vector<std::byte>& bytes) {
  bytes.resize(posted.length);
  for (std::size_t i = 0; i < bytes.size(); i += kWord) {
    const std::uint64_t word = random();
    std::memcpy(bytes.data() + i, &word, std::min<std::size_t>(kWord, bytes.size() - i));
  }
  std::size_t at = 0;
  for (const auto piece : posted.pieces) {
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), piece.size(), piece.begin());
    at += piece.size();
  }
}

void Stream::post(std::mt19937_64& random) {
  QueuePair& qp = from_.queue_pair(connection_);
  const std::uint32_t depth = from_.agreement(connection_).depth;
  // One that is not signaled keeps its place and memory until a later one completes: the last free place is signaled.
  if (outstanding_.size() >= depth || qp.send_room() == 0) return;
  Posted posted;
  posted.number = next_number_;
  posted.opcode = choose(random);
  const bool of_a_word = is_atomic(posted.opcode) || posted.opcode == SendOpcode::kAtomicWrite;
  posted.length = of_a_word ? kWord : choose_length(random);
  posted.place = random() % kPlaces;
  const bool asks = outstanding_.size() + 1 == depth || random() % 3 != 0;
  posted.signaled = asks || from_.agreement(connection_).signal_all;

  std::size_t offset = random() % (longest_ - posted.length + 1);
  if (of_a_word) offset = offset / kWord * kWord;
  const auto buffer = local_.subspan(posted.number % depth * longest_, longest_);
  posted.pieces = cut(buffer, posted.length, random);
  std::vector<std::byte> bytes;
  fill(posted, random, bytes);

  SendRequest request;
  request.wr_id = posted.number;
  request.opcode = posted.opcode;
  request.flags = (asks ? kSendSignaled : 0) | (random() % 4 == 0 ? kSendSolicited : 0);
  request.immediate = static_cast<std::uint32_t>(posted.number);
  request.shared_queue = engine::testing::kSharedQueue;
  request.remote_address = grant_.address + posted.place * longest_ + offset;
  request.rkey = grant_.key;
  if (random() % 16 == 0) request.flags |= kSendFence;
  if (changes_memory(posted.opcode) && readers_[posted.place] != 0) request.flags |= kSendFence;
  if (posted.opcode == SendOpcode::kFlush) request.immediate = random() % 2 == 0 ? 1 : 3;
  const bool may_inline = !reads_memory(posted.opcode) && posted.opcode != SendOpcode::kFlush;
  const bool is_inline = may_inline && posted.length <= kInlineMost && random() % 2 == 0;
  if (is_inline) request.flags |= kSendInline;
  if (posted.opcode == SendOpcode::kCompareSwap) {
    // Every second one finds what it compares with.
    request.compare_add = random() % 2 == 0 ? word_at(&model_[posted.place * longest_ + offset]) : random();
    request.swap = random();
  } else if (posted.opcode == SendOpcode::kFetchAdd) {
    request.compare_add = random();
  }
  std::vector<Sge> sges;
  for (const auto piece : posted.pieces) sges.push_back(from_.sge(piece));
  request.sges = sges;
  ASSERT_EQ(qp.post_send(request), 0);
  ++next_number_;
  ++counts_.posted;
  if (is_inline) std::fill(buffer.begin(), buffer.end(), std::byte{0xdd});  // it has been copied
  carry_out(posted, request, bytes, offset);
  outstanding_.push_back(std::move(posted));
}

void Stream::carry_out(Posted& posted, SendRequest& request, const std::vector<std::byte>& bytes, std::size_t offset) {
  std::byte* at = model_.data() + posted.place * longest_ + offset;
  if (reads_memory(posted.opcode)) posted.result.assign(at, at + posted.length);
  if (posted.opcode == SendOpcode::kRdmaRead) ++readers_[posted.place];
  if (changes_memory(posted.opcode)) last_writer_[posted.place] = posted.number;
  switch (posted.opcode) {
    case SendOpcode::kRdmaWrite:
    case SendOpcode::kRdmaWriteWithImmediate:
    case SendOpcode::kAtomicWrite:
      std::copy(bytes.begin(), bytes.end(), at);
      break;
    case SendOpcode::kCompareSwap:
      if (word_at(at) == request.compare_add) std::memcpy(at, &request.swap, kWord);
      break;
    case SendOpcode::kFetchAdd: {
      const std::uint64_t sum = word_at(at) + request.compare_add;
      std::memcpy(at, &sum, kWord);
      break;
    }
    default:
      break;
  }
  if (takes_receive(posted.opcode)) expect_message(posted, request, bytes, offset);
}

void Stream::expect_message(const Posted& posted, const SendRequest& request, const std::vector<std::byte>& bytes,
                            std::size_t offset) {
  Expected expected;
  expected.number = posted.number;
  expected.has_immediate = posted.opcode != SendOpcode::kSend;
  expected.is_write = posted.opcode == SendOpcode::kRdmaWriteWithImmediate;
  expected.place = posted.place;
  expected.offset = offset;
  expected.bytes = bytes;
  static_cast<void>(request);
  expected_.push_back(std::move(expected));
  ++counts_.messages_expected;
}

// --- completing

void Stream::on_completion(const Completion& completion) {
  ASSERT_EQ(completion.status, WcStatus::kSuccess) << "request " << completion.wr_id;
  for (;;) {
    ASSERT_FALSE(outstanding_.empty()) << "nothing is outstanding, yet " << completion.wr_id << " completes";
    Posted posted = std::move(outstanding_.front());
    outstanding_.pop_front();
    ++counts_.completed;
    verify(posted);
    if (posted.number == completion.wr_id) {
      ASSERT_TRUE(posted.signaled) << posted.number;
      ASSERT_EQ(completion.opcode, completion_of(posted.opcode));
      if (reads_memory(posted.opcode)) {
        ASSERT_EQ(completion.byte_length, posted.length);
      }
      return;
    }
    ASSERT_FALSE(posted.signaled) << posted.number << " must complete before " << completion.wr_id;
  }
}

void Stream::verify(const Posted& posted) {
  if (posted.opcode == SendOpcode::kRdmaRead) --readers_[posted.place];
  if (reads_memory(posted.opcode)) {
    ASSERT_EQ(gathered(posted.pieces, posted.length), posted.result) << "what request " << posted.number << " read";
  }
  // The last of those that wrote there, and it is done: the place is as the model has it.
  if (reliable() && last_writer_[posted.place] == posted.number) {
    const auto place = remote_.subspan(posted.place * longest_, longest_);
    const auto model = std::span(model_).subspan(posted.place * longest_, longest_);
    ASSERT_TRUE(std::equal(place.begin(), place.end(), model.begin())) << "after request " << posted.number;
  }
}

bool Stream::same_message(const Expected& expected, const Completion& completion,
                          std::span<const std::span<std::byte>> pieces) const {
  const bool has_immediate = (completion.flags & kWcWithImmediate) != 0;
  if (completion.byte_length != expected.bytes.size() || has_immediate != expected.has_immediate) return false;
  if (has_immediate && completion.immediate != static_cast<std::uint32_t>(expected.number)) return false;
  if (expected.is_write) return completion.opcode == WcOpcode::kReceiveRdmaWithImmediate;
  return completion.opcode == WcOpcode::kReceive && gathered(pieces, completion.byte_length) == expected.bytes;
}

void Stream::on_received(const Completion& completion, std::span<const std::span<std::byte>> pieces) {
  ASSERT_EQ(completion.status, WcStatus::kSuccess) << "receive " << completion.wr_id;
  ASSERT_EQ(completion.source_qp, from_.queue_pair(connection_).qpn().value());
  while (!reliable() && !expected_.empty() && !same_message(expected_.front(), completion, pieces)) {
    expected_.pop_front();  // lost on the way, as a whole
    ++counts_.messages_lost;
  }
  ASSERT_FALSE(expected_.empty()) << "a message that nobody sent, or out of order";
  const Expected& expected = expected_.front();
  ASSERT_TRUE(same_message(expected, completion, pieces)) << "message " << expected.number;
  if (!expected.is_write && reliable()) {  // a receive of UC may hold bytes of a message that was lost half way
    // No byte beyond the message's length.
    std::size_t left = completion.byte_length;
    for (const auto piece : pieces) {
      const auto rest = piece.subspan(std::min(left, piece.size()));
      left -= piece.size() - rest.size();
      const auto looked_at = rest.first(std::min<std::size_t>(rest.size(), Station::kGuardSize));
      ASSERT_TRUE(
          std::all_of(looked_at.begin(), looked_at.end(), [](std::byte byte) { return byte == Station::kGuard; }));
    }
  } else if (last_writer_[expected.place] == expected.number) {
    const auto place = remote_.subspan(expected.place * longest_ + expected.offset, expected.bytes.size());
    ASSERT_TRUE(std::equal(place.begin(), place.end(), expected.bytes.begin())) << "write " << expected.number;
  }
  ++counts_.messages_received;
  expected_.pop_front();
}

void Stream::check_at_rest() {
  if (!reliable()) {
    counts_.messages_lost += expected_.size();
    expected_.clear();
    return;
  }
  while (!outstanding_.empty() && !outstanding_.front().signaled) {
    ++counts_.completed;
    verify(outstanding_.front());
    outstanding_.pop_front();
  }
  EXPECT_TRUE(outstanding_.empty());
  EXPECT_TRUE(expected_.empty()) << "message " << expected_.front().number << " never arrived";
  EXPECT_TRUE(std::equal(model_.begin(), model_.end(), remote_.begin()));
}

}  // namespace verbena::sim
