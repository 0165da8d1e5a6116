#include "sim/datagram_stream.h"

#include <algorithm>
#include <cerrno>

#include <gtest/gtest.h>

#include "base/byte_order.h"
#include "wire/network_header.h"

namespace verbena::sim {
namespace {

using namespace engine;

constexpr std::uint32_t kNumberSize = 8;
constexpr std::size_t kUnsignaledAtMost = Station::kDatagramDepth / 2;

std::byte expected_byte(std::uint64_t number, std::uint32_t at) {
  return static_cast<std::byte>(number * 31 + at * 7);
}

// A message carries its number and is filled from it.
void fill(std::span<std::byte> message, std::uint64_t number) {
  for (std::uint32_t i = 0; i < message.size(); ++i) message[i] = expected_byte(number, i);
  store_be64(message.data(), number);
}

bool is_whole(std::span<const std::byte> message, std::uint64_t number) {
  for (std::uint32_t i = kNumberSize; i < message.size(); ++i) {
    if (message[i] != expected_byte(number, i)) return false;
  }
  return true;
}

}  // namespace

DatagramStream::DatagramStream(Station& from, Station& to, int copies)
    : from_(from), to_(to), copies_(copies), address_(from.datagram_address(to)), receive_posted_(kReceives, false) {
  for (std::uint32_t i = 0; i < Station::kDatagramDepth; ++i) send_buffers_.push_back(from.take_memory(kLongest));
  for (std::uint32_t i = 0; i < kReceives; ++i) receive_buffers_.push_back(to.take_memory(wire::kGrhSize + kLongest));
}

std::size_t DatagramStream::memory_for_sender() {
  return std::size_t{Station::kDatagramDepth} * (kLongest + 2 * Station::kGuardSize);
}

std::size_t DatagramStream::memory_for_receiver() {
  return std::size_t{kReceives} * (wire::kGrhSize + kLongest + 2 * Station::kGuardSize);
}

void DatagramStream::post(std::mt19937_64& random) {
  if (outstanding_.size() == Station::kDatagramDepth) return;
  const std::uint64_t number = next_number_++;
  Sent sent{.length = kNumberSize + static_cast<std::uint32_t>(random() % (kLongest - kNumberSize + 1)),
            .has_immediate = random() % 2 == 0};
  const bool fits_inline = sent.length <= from_.datagrams().capabilities().max_inline_data;
  const bool unsignaled_before =
      std::none_of(outstanding_.begin(), outstanding_.end(), [](const Posted& posted) { return posted.signaled; });
  const bool signaled = random() % 2 == 0 || (unsignaled_before && outstanding_.size() >= kUnsignaledAtMost);
  const auto bytes = send_buffers_[number % Station::kDatagramDepth].first(sent.length);
  fill(bytes, number);
  const Sge sge = from_.sge(bytes);
  SendRequest request;
  request.wr_id = number;
  request.opcode = sent.has_immediate ? SendOpcode::kSendWithImmediate : SendOpcode::kSend;
  request.immediate = static_cast<std::uint32_t>(number);
  request.flags = (signaled ? kSendSignaled : 0) | (fits_inline && random() % 2 == 0 ? kSendInline : 0);
  request.sges = {&sge, 1};
  request.address = &address_;
  request.remote_qpn = to_.datagrams().qpn().value();
  request.remote_qkey = engine::testing::kQkey;
  ASSERT_EQ(0, from_.datagrams().post_send(request));
  outstanding_.push_back({number, signaled});
  sent_.emplace(number, sent);
  ++counts_.posted;
}

void DatagramStream::post_receives() {
  for (std::uint32_t i = 0; i < kReceives; ++i) {
    if (receive_posted_[i]) continue;
    std::fill(receive_buffers_[i].begin(), receive_buffers_[i].end(), Station::kGuard);
    const Sge sge = to_.sge(receive_buffers_[i]);
    ASSERT_EQ(0, to_.datagrams().post_receive(i, {&sge, 1}));
    receive_posted_[i] = true;
  }
}

void DatagramStream::take_completions() {
  while (const auto completion = from_.datagram_send_completions().poll()) on_sent(*completion);
  while (const auto completion = to_.datagram_receive_completions().poll()) on_received(*completion);
}

// Those before it that were not signaled are done as well.
void DatagramStream::on_sent(const Completion& completion) {
  ASSERT_EQ(WcStatus::kSuccess, completion.status);
  while (!outstanding_.empty() && !outstanding_.front().signaled) {
    outstanding_.pop_front();
    ++counts_.completed;
  }
  ASSERT_FALSE(outstanding_.empty());
  ASSERT_EQ(outstanding_.front().number, completion.wr_id) << "once, and in order";
  outstanding_.pop_front();
  ++counts_.completed;
}

void DatagramStream::on_received(const Completion& completion) {
  ASSERT_EQ(WcStatus::kSuccess, completion.status);
  ASSERT_TRUE(receive_posted_.at(completion.wr_id)) << "a receive completes twice";
  receive_posted_[completion.wr_id] = false;
  ASSERT_GE(completion.byte_length, wire::kGrhSize + kNumberSize);
  const auto message = receive_buffers_[completion.wr_id].first(completion.byte_length).subspan(wire::kGrhSize);
  const std::uint64_t number = load_be64(message.data());
  const auto sent = sent_.find(number);
  ASSERT_NE(sent_.end(), sent) << number << " was never sent";
  ASSERT_EQ(sent->second.length, message.size());
  ASSERT_TRUE(is_whole(message, number)) << number;
  ASSERT_EQ(sent->second.has_immediate, (completion.flags & kWcWithImmediate) != 0);
  if (sent->second.has_immediate) {
    ASSERT_EQ(static_cast<std::uint32_t>(number), completion.immediate);
  }
  ASSERT_EQ(from_.datagrams().qpn().value(), completion.source_qp);
  ASSERT_LE(++sent->second.received, copies_) << number;
  ++counts_.received;
}

void DatagramStream::check_at_rest() const {
  EXPECT_TRUE(std::none_of(outstanding_.begin(), outstanding_.end(), [](const Posted& posted) {
    return posted.signaled;
  })) << "a datagram never completes";
  EXPECT_EQ(to_.datagrams_delivered(), counts_.received);
}

}  // namespace verbena::sim
