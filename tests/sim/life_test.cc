// A queue pair under random calls of every kind, against a model that only knows the rules: which state follows, how
// many requests are outstanding, which of them keep a place, and that each comes back exactly once and in order.
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "engine/testing/workbench.h"

namespace verbena::sim {
namespace {

using namespace engine;
using engine::testing::Host;
using engine::testing::kQkey;

// What is posted and not yet completed.
struct Outstanding {
  std::uint64_t wr_id = 0;
  std::uint64_t place = 0;
  bool is_signaled = false;
  bool fails = false;
};

class Life {
 public:
  Life(std::uint64_t seed, QpType type)
      : random_(seed), here_(1), there_(2), address_(here_.address_of(there_)), qp_(here_.config(100, type)) {}

  void step() {
    switch (random_() % 8) {
      case 0:
        modify();
        break;
      case 1:
      case 2:
        post_send();
        break;
      case 3:
        post_receive();
        break;
      case 4:
        receive();
        break;
      case 5:
        finish();
        break;
      default:
        transmit();
    }
    drain_completions();
  }
  // Enough of the way up that the rest is worth trying.
  void wake() {
    engine::testing::bring_to(qp_, QpState::kReadyToSend, here_.port());
    state_ = qp_.state();
  }
  std::uint64_t visits(QpState state) const { return visits_[static_cast<std::size_t>(state)]; }

 private:
  void modify() {
    QpAttributes attributes;
    attributes.state = static_cast<QpState>(random_() % 8);
    attributes.current_state = random_() % 4 == 0 ? static_cast<QpState>(random_() % 8) : state_;
    attributes.port = 1;
    attributes.qkey = kQkey;
    attributes.path_mtu = 3;
    attributes.address = address_.vector;
    // The required bits as a start, so that about half of the calls are good.
    AttrMask mask = kAttrState | edge_of(qp_.type(), state_, attributes.state).required;
    if (random_() % 2 == 0) mask ^= 1U << (random_() % 26);
    if (random_() % 16 == 0) mask ^= static_cast<AttrMask>(random_());

    const QpState to = (mask & kAttrState) != 0 ? attributes.state : state_;
    const bool draining =
        state_ == QpState::kSendQueueDrained && to != QpState::kError && to != QpState::kReset && begun_ != 0;
    const bool named_wrong = (mask & kAttrCurrentState) != 0 && attributes.current_state != state_;
    const bool good = check_transition(qp_.type(), state_, to, mask) == 0 && !draining && !named_wrong &&
                      (mask & kAttrAlternatePath) == 0;
    const Status status = qp_.modify(attributes, mask, here_.port());
    ASSERT_EQ(status.has_value(), good) << name_of(state_) << " to " << name_of(to) << " mask " << mask << ": "
                                        << (status ? "" : status.error().message);
    if (!good) {
      ASSERT_EQ(status.error().system_errno, EINVAL);
      return;
    }
    state_ = to;
    ++visits_[static_cast<std::size_t>(to)];
    if (to == QpState::kReset) {
      sends_.clear();
      receives_.clear();
      qp_.give_back_all();
      send_places_ = receive_places_ = {};
    }
    if (to == QpState::kReset || to == QpState::kError) on_their_way_ = begun_ = batch_ = not_taken_ = 0;
  }

  void post_send() {
    const bool too_long = random_() % 16 == 0 && !is_connected();
    const Sge sge = here_.sge(0, too_long ? 5'000 : 64);
    SendRequest request;
    request.wr_id = ++last_wr_id_;
    request.flags = random_() % 2 == 0 ? kSendSignaled : 0;
    request.sges = {&sge, 1};
    request.address = &address_;
    request.remote_qpn = 100;
    request.remote_qkey = kQkey;
    const int error = qp_.post_send(request);
    if (state_ < QpState::kReadyToSend || !sends()) {
      ASSERT_EQ(error, EINVAL);
      return;
    }
    if (send_places_.held() == qp_.capabilities().max_send_wr) {
      ASSERT_EQ(error, ENOMEM);
      return;
    }
    ASSERT_EQ(error, 0);
    sends_.push_back({last_wr_id_, ++send_places_.posted, (request.flags & kSendSignaled) != 0, sge.length > 1024});
  }

  void post_receive() {
    const Sge sge = here_.sge(4096, 2048);
    const int error = qp_.post_receive(++last_wr_id_, {&sge, 1});
    const bool is_xrc = qp_.type() == QpType::kXrcSend || qp_.type() == QpType::kXrcReceive;
    if (state_ == QpState::kReset || is_xrc) {
      ASSERT_EQ(error, EINVAL);
    } else if (receive_places_.held() == qp_.capabilities().max_recv_wr) {
      ASSERT_EQ(error, ENOMEM);
    } else {
      ASSERT_EQ(error, 0);
      ++receive_places_.posted;
      receives_.push_back(last_wr_id_);
    }
  }

  void receive() {
    wire::Packet packet;
    packet.bth.opcode = wire::Opcode::kUdSendOnly;
    packet.deth.qkey = Qkey(kQkey);
    const Drop drop = qp_.on_packet(packet, {}, 24, now_);
    const bool receives = state_ >= QpState::kReadyToReceive && state_ != QpState::kError;
    if (!receives) {
      ASSERT_EQ(drop, Drop::kBadQpState);
    } else if (qp_.type() != QpType::kUd) {
      ASSERT_EQ(drop, Drop::kOpcodeNotForQp);
    } else {
      ASSERT_EQ(drop, receives_.empty() ? Drop::kNoReceiveRequest : Drop::kNone);
    }
  }

  bool is_connected() const {
    return qp_.type() == QpType::kRc || qp_.type() == QpType::kUc || qp_.type() == QpType::kXrcSend;
  }
  bool sends() const { return qp_.type() == QpType::kUd || qp_.type() == QpType::kRawPacket || is_connected(); }
  // Nobody answers here, so what such a queue pair sends is never done.
  bool waits_for_answers() const { return is_connected() && qp_.type() != QpType::kUc; }

  // Every request is of one packet.
  void transmit() {
    Transmit packet;
    const bool yielded = qp_.poll_transmit(now_, packet);
    bool may = on_their_way_ < sends_.size() && !sends_[on_their_way_].fails;
    if (is_connected()) {
      // What has been begun goes on while the queue drains.
      may = may && batch_ < kBatch &&
            (state_ == QpState::kReadyToSend || (state_ == QpState::kSendQueueDrained && on_their_way_ < begun_));
    } else {
      may = may && state_ == QpState::kReadyToSend && sends();
    }
    ASSERT_EQ(yielded, may);
    if (yielded) {
      ++on_their_way_;
      ++batch_;
      ++not_taken_;
      begun_ = std::max(begun_, on_their_way_);
    }
    follow_failure();
  }

  void finish() {
    const std::size_t count = random_() % 4;
    if (random_() % 4 == 0) {
      qp_.rewind_transmit();
      on_their_way_ -= not_taken_;
      if (!is_connected()) begun_ = on_their_way_;
      batch_ = not_taken_ = 0;
      return;
    }
    const std::size_t taken = std::min(count, not_taken_);
    qp_.on_transmitted(count);
    not_taken_ -= taken;
    if (not_taken_ == 0) batch_ = 0;
    if (!waits_for_answers()) {
      on_their_way_ -= taken;
      begun_ -= taken;
      transmitted_ += taken;
    }
    follow_failure();
  }

  // A datagram or frame that fails with nothing before it takes the queue to SQE. The engine may have found it or not
  // yet.
  void follow_failure() {
    if (qp_.state() != QpState::kSendQueueError || state_ == QpState::kSendQueueError) return;
    ASSERT_EQ(on_their_way_, 0U);
    ASSERT_LT(transmitted_, sends_.size());
    ASSERT_TRUE(sends_[transmitted_].fails);
    state_ = QpState::kSendQueueError;
    ++visits_[static_cast<std::size_t>(state_)];
  }

  // Takes the completion of a send off the model. Those that succeed silently are passed over.
  void on_send_completion(const Completion& completion) {
    while (transmitted_ != 0 && !sends_.empty() && !sends_.front().is_signaled) {
      sends_.pop_front();
      --transmitted_;
    }
    ASSERT_FALSE(sends_.empty());
    ASSERT_EQ(completion.wr_id, sends_.front().wr_id);
    if (completion.status == WcStatus::kSuccess) {
      ASSERT_TRUE(sends_.front().is_signaled);
      ASSERT_GT(transmitted_, 0U);
      --transmitted_;
    } else if (completion.status == WcStatus::kLocalLengthError) {
      ASSERT_TRUE(sends_.front().fails);
    } else {
      ASSERT_EQ(completion.status, WcStatus::kFlushError);
    }
    send_places_.given_back = sends_.front().place;
    sends_.pop_front();
  }

  void drain_completions() {
    while (const auto completion = here_.send_completions().poll()) {
      on_send_completion(*completion);
      if (::testing::Test::HasFatalFailure()) return;
    }
    for (; transmitted_ != 0; --transmitted_) {
      ASSERT_FALSE(sends_.empty());
      ASSERT_FALSE(sends_.front().is_signaled) << "its completion is missing";
      sends_.pop_front();
    }
    while (const auto completion = here_.receive_completions().poll()) {
      ASSERT_FALSE(receives_.empty());
      ASSERT_EQ(completion->wr_id, receives_.front()) << "in order";
      receives_.pop_front();
      ++receive_places_.given_back;
    }
    if (state_ == QpState::kError || state_ == QpState::kSendQueueError) {
      ASSERT_TRUE(sends_.empty()) << "everything was flushed";
    }
    ASSERT_TRUE(state_ != QpState::kError || receives_.empty());
    ASSERT_EQ(qp_.state(), state_);
  }

  struct Places {
    std::uint64_t posted = 0;
    std::uint64_t given_back = 0;
    std::uint64_t held() const { return posted - given_back; }
  };

  std::mt19937_64 random_;
  Host here_;
  Host there_;
  AddressHandle address_;
  QueuePair qp_;
  Instant now_{0};
  QpState state_ = QpState::kReset;
  std::deque<Outstanding> sends_;
  std::deque<std::uint64_t> receives_;
  static constexpr std::size_t kBatch = 16;  // that a connection yields before it wants to know what became of them

  std::size_t on_their_way_ = 0;  // yielded, and not taken back
  std::size_t begun_ = 0;         // yielded at least once; a connection does not take that back
  std::size_t batch_ = 0;
  std::size_t not_taken_ = 0;  // yielded, and the transport has not said that it took them
  std::size_t transmitted_ = 0;
  Places send_places_;
  Places receive_places_;
  std::uint64_t last_wr_id_ = 0;
  std::array<std::uint64_t, kQpStates> visits_{};
};

class LifeTest : public ::testing::TestWithParam<QpType> {};

TEST_P(LifeTest, AnyCallsInAnyOrderFollowTheRules) {
  std::array<std::uint64_t, kQpStates> visits{};
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Life life(seed, GetParam());
    if (GetParam() == QpType::kUd && seed % 2 == 0) life.wake();
    for (int i = 0; i < 500; ++i) {
      life.step();
      if (HasFatalFailure()) return;
    }
    for (std::size_t state = 0; state < kQpStates; ++state) visits[state] += life.visits(static_cast<QpState>(state));
  }
  for (const QpState state : {QpState::kReset, QpState::kInit, QpState::kReadyToReceive, QpState::kReadyToSend,
                              QpState::kSendQueueDrained, QpState::kError}) {
    EXPECT_GT(visits[static_cast<std::size_t>(state)], 20U) << name_of(state) << " was seldom reached";
  }
  EXPECT_TRUE(GetParam() != QpType::kUd || visits[static_cast<std::size_t>(QpState::kSendQueueError)] > 20);
}

INSTANTIATE_TEST_SUITE_P(Types, LifeTest, ::testing::ValuesIn(kQpTypes),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

}  // namespace
}  // namespace verbena::sim
