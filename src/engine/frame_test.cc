// Raw packet queue pairs: frames out as they were written, frames in from the first byte, and what does not fit.
#include <cerrno>
#include <vector>

#include <gtest/gtest.h>

#include "engine/testing/workbench.h"

namespace verbena::engine {
namespace {

using testing::flatten;
using testing::Host;
using testing::move_to;

class FrameTest : public ::testing::Test {
 protected:
  FrameTest() {
    for (std::size_t i = 0; i < host_.bytes().size(); ++i) host_.bytes()[i] = static_cast<std::byte>(i * 7 + i / 256);
  }

  Status to_init() {
    QpAttributes attributes;
    attributes.port = 1;
    return move_to(qp_, QpState::kInit, host_.port(), kAttrPort, attributes);
  }
  void make_ready() {
    ASSERT_TRUE(to_init());
    ASSERT_TRUE(move_to(qp_, QpState::kReadyToReceive, host_.port()));
    ASSERT_TRUE(move_to(qp_, QpState::kReadyToSend, host_.port()));
  }
  int post(std::span<const Sge> sges, std::uint32_t flags = kSendSignaled, SendOpcode opcode = SendOpcode::kSend) {
    SendRequest request;
    request.wr_id = ++posted_;
    request.flags = flags;
    request.opcode = opcode;
    request.sges = sges;
    return qp_.post_send(request);
  }
  int post(std::uint32_t length, std::uint32_t flags = kSendSignaled) {
    const Sge sge = host_.sge(0, length);
    return post({&sge, 1}, flags);
  }
  int expect_at(std::size_t offset, std::uint32_t length, std::uint64_t wr_id = 7) {
    const Sge sge = host_.sge(offset, length);
    return qp_.post_receive(wr_id, {&sge, 1});
  }
  WcStatus next_send_status() {
    const auto completion = host_.send_completions().poll();
    EXPECT_TRUE(completion);
    return completion ? completion->status : WcStatus::kGeneralError;
  }

  Host host_{1};
  QueuePair qp_{host_.config(100, QpType::kRawPacket)};
  Transmit packet_;
  Instant now_{1'000'000'000};
  std::uint64_t posted_ = 0;
};

TEST_F(FrameTest, GoesOutAsItWasWrittenWithoutHeaderOrPad) {
  make_ready();
  const std::array sges{host_.sge(100, 14), host_.sge(0, 0), host_.sge(300, 33)};
  ASSERT_EQ(post(sges), 0);
  ASSERT_TRUE(qp_.poll_transmit(now_, packet_));
  std::vector<std::byte> expected(host_.bytes().begin() + 100, host_.bytes().begin() + 114);
  expected.insert(expected.end(), host_.bytes().begin() + 300, host_.bytes().begin() + 333);
  EXPECT_EQ(flatten(packet_), expected);
  EXPECT_EQ(packet_.size, 47U);
  EXPECT_FALSE(host_.send_completions().poll());
  qp_.on_transmitted(1);
  const auto completion = host_.send_completions().poll();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->status, WcStatus::kSuccess);
  EXPECT_EQ(completion->opcode, WcOpcode::kSend);
  EXPECT_EQ(completion->wr_id, 1U);
}

TEST_F(FrameTest, InlineDataIsTakenWhenItIsPosted) {
  make_ready();
  const std::vector<std::byte> expected(host_.bytes().begin(), host_.bytes().begin() + 60);
  ASSERT_EQ(post(60, kSendSignaled | kSendInline), 0);
  host_.bytes()[0] ^= std::byte{0xff};
  ASSERT_TRUE(qp_.poll_transmit(now_, packet_));
  EXPECT_EQ(flatten(packet_), expected);
}

TEST_F(FrameTest, WhatIsNoFrameIsRefused) {
  make_ready();
  EXPECT_EQ(post(13), EINVAL);
  const Sge sge = host_.sge(0, 60);
  EXPECT_EQ(post({}, kSendSignaled), EINVAL);
  for (const SendOpcode opcode : {SendOpcode::kSendWithImmediate, SendOpcode::kRdmaWrite, SendOpcode::kRdmaRead,
                                  SendOpcode::kSegmentedSend, SendOpcode::kCompareSwap}) {
    EXPECT_EQ(post({&sge, 1}, kSendSignaled, opcode), EINVAL);
  }
  constexpr std::uint32_t kChecksum = 16;
  EXPECT_EQ(post({&sge, 1}, kSendSignaled | kChecksum), EINVAL);
  EXPECT_EQ(post({&sge, 1}), 0);
}

TEST_F(FrameTest, AFrameTooLongForThePortStopsTheSendQueueAndRtsIsReachedAgain) {
  make_ready();
  const std::uint32_t longest = host_.port().frame_size;
  ASSERT_EQ(post(longest), 0);
  ASSERT_EQ(post(longest + 1, 0), 0);
  ASSERT_EQ(post(60), 0);
  ASSERT_TRUE(qp_.poll_transmit(now_, packet_));
  EXPECT_FALSE(qp_.poll_transmit(now_, packet_));
  qp_.on_transmitted(1);
  EXPECT_EQ(next_send_status(), WcStatus::kSuccess);
  EXPECT_EQ(next_send_status(), WcStatus::kLocalLengthError);
  EXPECT_EQ(next_send_status(), WcStatus::kFlushError);
  EXPECT_EQ(qp_.state(), QpState::kSendQueueError);
  ASSERT_TRUE(move_to(qp_, QpState::kReadyToSend, host_.port()));
  ASSERT_EQ(post(60), 0);
  EXPECT_TRUE(qp_.poll_transmit(now_, packet_));
}

TEST_F(FrameTest, MemoryThatMayNotBeReadStopsTheSendQueue) {
  make_ready();
  Sge sge = host_.sge(0, 60);
  sge.lkey ^= 0x100;
  ASSERT_EQ(post({&sge, 1}), 0);
  EXPECT_FALSE(qp_.poll_transmit(now_, packet_));
  EXPECT_EQ(next_send_status(), WcStatus::kLocalProtectionError);
}

TEST_F(FrameTest, WhatTheTransportDidNotTakeIsYieldedAgain) {
  make_ready();
  ASSERT_EQ(post(60), 0);
  ASSERT_TRUE(qp_.poll_transmit(now_, packet_));
  qp_.rewind_transmit();
  EXPECT_TRUE(qp_.has_untransmitted());
  ASSERT_TRUE(qp_.poll_transmit(now_, packet_));
  EXPECT_EQ(packet_.size, 60U);
}

TEST_F(FrameTest, ARateLimitSpacesFrames) {
  make_ready();
  QpAttributes attributes;
  attributes.rate_limit = 8000;  // kbit/s: a byte in 1000 ns
  ASSERT_TRUE(move_to(qp_, QpState::kReadyToSend, host_.port(), kAttrRateLimit, attributes));
  EXPECT_EQ(qp_.query().rate_limit, 8000U);
  ASSERT_EQ(post(1000), 0);
  ASSERT_EQ(post(1000), 0);
  ASSERT_TRUE(qp_.poll_transmit(now_, packet_));
  qp_.on_transmitted(1);
  EXPECT_FALSE(qp_.poll_transmit(now_, packet_));
  const auto due = qp_.next_departure();
  ASSERT_TRUE(due);
  EXPECT_NEAR(static_cast<double>(due->ns - now_.ns), 980'000, 1'000);  // 20 us of burst
  EXPECT_TRUE(qp_.poll_transmit(*due, packet_));
  qp_.on_transmitted(1);

  attributes.rate_limit = 1999;
  EXPECT_FALSE(move_to(qp_, QpState::kReadyToSend, host_.port(), kAttrRateLimit, attributes));
  attributes.rate_limit = 0;
  ASSERT_TRUE(move_to(qp_, QpState::kReadyToSend, host_.port(), kAttrRateLimit, attributes));
  for (int i = 0; i < 2; ++i) ASSERT_EQ(post(1000), 0);
  ASSERT_TRUE(qp_.poll_transmit(now_, packet_));
  EXPECT_TRUE(qp_.poll_transmit(now_, packet_));
}

TEST_F(FrameTest, FillsTheReceiveFromItsFirstByte) {
  make_ready();
  const std::array sges{host_.sge(1000, 20), host_.sge(2000, 100)};
  ASSERT_EQ(qp_.post_receive(7, sges), 0);
  std::vector<std::byte> frame(60);
  for (std::size_t i = 0; i < frame.size(); ++i) frame[i] = static_cast<std::byte>(200 - i);
  const std::byte behind = host_.bytes()[2040];
  EXPECT_EQ(qp_.on_frame(frame), Drop::kNone);
  const auto completion = host_.receive_completions().poll();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->status, WcStatus::kSuccess);
  EXPECT_EQ(completion->opcode, WcOpcode::kReceive);
  EXPECT_EQ(completion->byte_length, 60U);
  EXPECT_EQ(completion->wr_id, 7U);
  EXPECT_EQ(completion->qp_number, 100U);
  EXPECT_EQ(completion->flags, 0U);
  EXPECT_TRUE(std::equal(frame.begin(), frame.begin() + 20, host_.bytes().begin() + 1000));
  EXPECT_TRUE(std::equal(frame.begin() + 20, frame.end(), host_.bytes().begin() + 2000));
  EXPECT_EQ(host_.bytes()[2040], behind);
}

TEST_F(FrameTest, ReceivesInRtrAndNotBefore) {
  ASSERT_TRUE(to_init());
  ASSERT_EQ(expect_at(0, 100), 0);
  const std::vector<std::byte> frame(60);
  EXPECT_EQ(qp_.on_frame(frame), Drop::kBadQpState);
  ASSERT_TRUE(move_to(qp_, QpState::kReadyToReceive, host_.port()));
  EXPECT_EQ(qp_.on_frame(frame), Drop::kNone);
  EXPECT_EQ(qp_.on_frame(frame), Drop::kNoReceiveRequest);
}

TEST_F(FrameTest, AFrameThatDoesNotFitEndsTheQueuePair) {
  make_ready();
  ASSERT_EQ(expect_at(0, 59, 7), 0);
  ASSERT_EQ(expect_at(0, 100, 8), 0);
  EXPECT_EQ(qp_.on_frame(std::vector<std::byte>(60)), Drop::kFrameTooLong);
  EXPECT_EQ(qp_.state(), QpState::kError);
  auto completion = host_.receive_completions().poll();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->status, WcStatus::kLocalLengthError);
  EXPECT_EQ(completion->wr_id, 7U);
  completion = host_.receive_completions().poll();
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->status, WcStatus::kFlushError);
  EXPECT_EQ(completion->wr_id, 8U);
}

TEST_F(FrameTest, MemoryThatMayNotBeWrittenEndsTheQueuePair) {
  make_ready();
  Sge sge = host_.sge(0, 100);
  sge.lkey ^= 0x100;
  ASSERT_EQ(qp_.post_receive(7, {&sge, 1}), 0);
  EXPECT_EQ(qp_.on_frame(std::vector<std::byte>(60)), Drop::kReceiveProtection);
  EXPECT_EQ(qp_.state(), QpState::kError);
  EXPECT_EQ(host_.receive_completions().poll()->status, WcStatus::kLocalProtectionError);
}

TEST_F(FrameTest, TakesReceivesOfASharedQueue) {
  testing::QueueSource source(4, 2);
  QpConfig config = host_.config(101, QpType::kRawPacket);
  config.shared_receives = &source;
  QueuePair qp(config);
  QpAttributes attributes;
  attributes.port = 1;
  ASSERT_TRUE(move_to(qp, QpState::kInit, host_.port(), kAttrPort, attributes));
  ASSERT_TRUE(move_to(qp, QpState::kReadyToReceive, host_.port()));
  EXPECT_EQ(qp.on_frame(std::vector<std::byte>(60)), Drop::kNoReceiveRequest);
  const Sge fits = host_.sge(0, 60);
  const Sge small = host_.sge(0, 59);
  ASSERT_EQ(source.queue().post(1, {&fits, 1}), 0);
  ASSERT_EQ(source.queue().post(2, {&small, 1}), 0);
  EXPECT_EQ(qp.on_frame(std::vector<std::byte>(60)), Drop::kNone);
  EXPECT_EQ(host_.receive_completions().poll()->wr_id, 1U);
  EXPECT_EQ(qp.on_frame(std::vector<std::byte>(60)), Drop::kFrameTooLong);
  EXPECT_EQ(host_.receive_completions().poll()->status, WcStatus::kLocalLengthError);
  EXPECT_EQ(qp.poll_event(), QpEvent::kLastWqeReached);
}

TEST_F(FrameTest, APacketOfRoceIsNotForIt) {
  make_ready();
  ASSERT_EQ(expect_at(0, 2000), 0);
  wire::Packet packet;
  packet.bth.opcode = wire::Opcode::kUdSendOnly;
  EXPECT_EQ(qp_.on_packet(packet, {}, 64, {}), Drop::kOpcodeNotForQp);
}

TEST_F(FrameTest, AnInfinibandPortHasNoFrames) {
  host_.put_on_infiniband(5, 0);
  const Status refused = to_init();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().system_errno, EINVAL);
  EXPECT_NE(refused.error().message.find("InfiniBand"), std::string::npos);
}

}  // namespace
}  // namespace verbena::engine
