// The device as a whole, on the loopback interface of whoever runs the test: no privilege needed.
#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "device/address_handle.h"
#include "device/device.h"
#include "device/memory_region.h"
#include "device/queue_pair.h"

namespace verbena::device {
namespace {

constexpr std::uint32_t kTestQkey = 0x11111111;

class Datagrams : public testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("VERBENA_DEVICES", "lo", 1); }

  void SetUp() override {
    ASSERT_EQ(device_list().size(), 1U);
    auto opened = Context::open(*device_list()[0]);
    ASSERT_TRUE(opened) << opened.error().message;
    context_ = *opened;
    domain_ = ProtectionDomain::create(*context_).value();
    queue_ = CompletionQueue::create(*context_, 64, nullptr, 1).value();
    memory_ = MemoryRegion::create(*domain_, reinterpret_cast<std::uint64_t>(buffer_.data()), buffer_.size(),
                                   reinterpret_cast<std::uint64_t>(buffer_.data()), engine::kLocalWrite)
                  .value();
  }

  std::unique_ptr<QueuePair> ready_queue_pair() {
    QpInit init;
    init.send_queue = init.receive_queue = queue_.get();
    init.capabilities = {
        .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 64};
    auto made = QueuePair::create(*domain_, init).value();
    QpAttributes attributes;
    attributes.state = QpState::kInit;
    attributes.port = 1;
    attributes.qkey = kTestQkey;
    EXPECT_TRUE(
        made->modify(attributes, engine::kAttrState | engine::kAttrPkeyIndex | engine::kAttrPort | engine::kAttrQkey));
    attributes.state = QpState::kReadyToReceive;
    EXPECT_TRUE(made->modify(attributes, engine::kAttrState));
    attributes.state = QpState::kReadyToSend;
    EXPECT_TRUE(made->modify(attributes, engine::kAttrState | engine::kAttrSendPsn));
    return made;
  }

  std::unique_ptr<AddressHandle> handle_to_self() {
    engine::AddressVector vector;
    vector.destination = *parse_gid("127.0.0.1");
    vector.is_global = true;
    vector.hop_limit = 64;
    vector.traffic_class = 0x20;
    vector.port = 1;
    return AddressHandle::create(*domain_, vector).value();
  }

  Sge piece(std::size_t offset, std::uint32_t length) {
    return {reinterpret_cast<std::uint64_t>(buffer_.data() + offset), length, memory_->key()};
  }

  std::vector<Completion> wait_for(std::size_t count) {
    std::vector<Completion> all;
    for (int i = 0; i < 1'000'000 && all.size() < count; ++i) {
      std::array<Completion, 8> some;
      const int got = queue_->poll(some);
      EXPECT_GE(got, 0);
      all.insert(all.end(), some.begin(), some.begin() + got);
    }
    return all;
  }

  std::array<std::byte, 8192> buffer_{};
  std::shared_ptr<Context> context_;
  std::unique_ptr<ProtectionDomain> domain_;
  std::unique_ptr<CompletionQueue> queue_;
  std::unique_ptr<MemoryRegion> memory_;
};

TEST_F(Datagrams, ArriveWithTheirGrhAndImmediate) {
  const auto sender = ready_queue_pair();
  const auto receiver = ready_queue_pair();
  const auto handle = handle_to_self();
  const std::array into{piece(4096, 1024)};
  ASSERT_EQ(QueuePair::ReceiveBatch(*receiver).post(7, into), 0);
  std::memcpy(buffer_.data(), "lemon verbena", 13);
  const std::array from{piece(0, 13)};
  SendRequest request;
  request.wr_id = 5;
  request.opcode = engine::SendOpcode::kSendWithImmediate;
  request.flags = engine::kSendSignaled;
  request.immediate = 0xaabbccdd;
  request.sges = from;
  request.address = &handle->engine();
  request.remote_qpn = receiver->qpn().value();
  request.remote_qkey = kTestQkey;
  ASSERT_EQ(QueuePair::SendBatch(*sender).post(request), 0);
  auto completions = wait_for(2);
  ASSERT_EQ(completions.size(), 2U);
  // Either may come first: another thread may take the packet in before this one has told that it is sent.
  if (completions[0].opcode == engine::WcOpcode::kReceive) std::swap(completions[0], completions[1]);
  EXPECT_EQ(completions[0].wr_id, 5U);
  EXPECT_EQ(completions[0].status, engine::WcStatus::kSuccess);
  const auto& received = completions[1];
  EXPECT_EQ(received.wr_id, 7U);
  EXPECT_EQ(received.status, engine::WcStatus::kSuccess);
  EXPECT_EQ(received.byte_length, 40U + 13);
  EXPECT_EQ(received.immediate, 0xaabbccddU);
  EXPECT_EQ(received.source_qp, sender->qpn().value());
  EXPECT_EQ(std::memcmp(buffer_.data() + 4096 + 40, "lemon verbena", 13), 0);
  EXPECT_EQ(buffer_[4096 + 20], std::byte{0x45});
  EXPECT_EQ(buffer_[4096 + 21], std::byte{0x20});
}

TEST_F(Datagrams, AQueuePairInUseKeepsItsDomainAndItsQueues) {
  const auto pair = ready_queue_pair();
  EXPECT_TRUE(domain_->in_use());
  EXPECT_TRUE(queue_->in_use());
}

}  // namespace
}  // namespace verbena::device
