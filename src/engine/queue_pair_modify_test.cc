// modify() over every type, state, next state and attribute: what the table allows is done, what it does not allow is
// refused in words, and a refusal changes nothing.
#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "engine/testing/workbench.h"

namespace verbena::engine {
namespace {

using testing::Host;

constexpr unsigned kAttributes = 26;

class ModifyTest : public ::testing::TestWithParam<QpType> {
 protected:
  QpAttributes good() {
    QpAttributes attributes;
    attributes.port = 1;
    attributes.path_mtu = 3;
    attributes.qkey = 0x11111111;
    attributes.destination_qpn = 5;
    attributes.address = host_.address_of(peer_).vector;
    attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 16;
    attributes.min_rnr_timer = 12;
    attributes.timeout = 14;
    attributes.retry_count = attributes.rnr_retry = 7;
    attributes.receive_psn = 0x123456;
    attributes.send_psn = 0xabcdef;
    attributes.access = kLocalWrite | kRemoteWrite;
    return attributes;
  }
  Status step(QueuePair& qp, QpState to, AttrMask mask, QpAttributes attributes) {
    attributes.state = to;
    return qp.modify(attributes, mask, host_.port());
  }
  // A queue pair in the state; nullptr where its type has none such.
  std::unique_ptr<QueuePair> in(QpState state) {
    auto qp = std::make_unique<QueuePair>(host_.config(100, GetParam()));
    const auto forward = [&](QpState to) {
      return step(*qp, to, kAttrState | edge_of(GetParam(), qp->state(), to).required, good());
    };
    for (const QpState to : {QpState::kInit, QpState::kReadyToReceive, QpState::kReadyToSend}) {
      if (state == QpState::kReset || qp->state() == state) break;
      EXPECT_TRUE(forward(to));
    }
    if (state == QpState::kSendQueueError) fail_a_send(*qp);
    if (state == QpState::kSendQueueDrained || state == QpState::kError) {
      EXPECT_TRUE(forward(state));
    }
    return qp->state() == state ? std::move(qp) : nullptr;
  }
  void fail_a_send(QueuePair& qp) {
    SendRequest bad;
    bad.opcode = SendOpcode::kRdmaRead;
    const Sge nowhere{1, 8, 0xbad};
    bad.sges = {&nowhere, 1};
    Transmit packet;
    if (qp.post_send(bad) == 0) qp.poll_transmit({}, packet);
    while (host_.send_completions().poll()) continue;
  }
  static bool same(const QpAttributes& a, const QpAttributes& b) {
    return a.state == b.state && a.current_state == b.current_state && a.path_mtu == b.path_mtu && a.qkey == b.qkey &&
           a.receive_psn == b.receive_psn && a.send_psn == b.send_psn && a.destination_qpn == b.destination_qpn &&
           a.access == b.access && a.address == b.address && a.pkey_index == b.pkey_index &&
           a.sqd_async_notify == b.sqd_async_notify && a.max_rd_atomic == b.max_rd_atomic &&
           a.max_dest_rd_atomic == b.max_dest_rd_atomic && a.min_rnr_timer == b.min_rnr_timer && a.port == b.port &&
           a.timeout == b.timeout && a.retry_count == b.retry_count && a.rnr_retry == b.rnr_retry &&
           a.rate_limit == b.rate_limit;
  }
  void expect(QpState from, QpState to, AttrMask mask, const QpAttributes& attributes, bool accepted) {
    const auto qp = in(from);
    const QpAttributes before = qp->query();
    const Status status = step(*qp, to, mask, attributes);
    ASSERT_EQ(status.has_value(), accepted) << name_of(from) << " to " << name_of(to) << " mask " << mask;
    if (accepted) {
      ASSERT_EQ(qp->state(), (mask & kAttrState) != 0 ? to : from);
      return;
    }
    ASSERT_EQ(status.error().system_errno, EINVAL);
    ASSERT_FALSE(status.error().message.empty());
    ASSERT_TRUE(same(before, qp->query())) << name_of(from) << " to " << name_of(to) << " mask " << mask;
  }
  template <class Check>
  void for_each_step(Check check) {
    for (std::size_t from = 0; from < kQpStates; ++from) {
      if (in(static_cast<QpState>(from)) == nullptr) continue;
      for (std::size_t to = 0; to < kQpStates; ++to) {
        check(static_cast<QpState>(from), static_cast<QpState>(to));
        if (HasFatalFailure()) return;
      }
    }
  }

  Host host_{1};
  Host peer_{2};
};

TEST_P(ModifyTest, DoesWhatTheTableAllowsAndRefusesTheRest) {
  for_each_step([this](QpState from, QpState to) {
    QpAttributes attributes = good();
    attributes.current_state = from;
    const QpEdge& edge = edge_of(GetParam(), from, to);
    for (const AttrMask base : {edge.required, edge.required | (edge.optional & ~kAttrAlternatePath)}) {
      for (unsigned bit = 0; bit < kAttributes; ++bit) {
        const AttrMask mask = (kAttrState | base) ^ (1U << bit);
        const QpState next = (mask & kAttrState) != 0 ? to : from;
        const bool allowed = check_transition(GetParam(), from, next, mask) == 0 && (mask & kAttrAlternatePath) == 0;
        expect(from, to, mask, attributes, allowed);
        if (HasFatalFailure()) return;
      }
    }
  });
}

TEST_P(ModifyTest, RefusesEachAttributeOutOfItsRange) {
  struct Bad {
    AttrMask bit;
    void (*spoil)(QpAttributes&);
  };
  static constexpr std::array<Bad, 14> kBad{{
      {kAttrPort, [](QpAttributes& a) { a.port = 2; }},
      {kAttrPkeyIndex, [](QpAttributes& a) { a.pkey_index = 1; }},
      {kAttrAccessFlags, [](QpAttributes& a) { a.access = 1U << 31; }},
      {kAttrDestinationQpn, [](QpAttributes& a) { a.destination_qpn = 1U << 24; }},
      {kAttrPathMtu, [](QpAttributes& a) { a.path_mtu = 6; }},
      {kAttrPathMtu, [](QpAttributes& a) { a.path_mtu = 0; }},
      {kAttrAddressVector, [](QpAttributes& a) { a.address.is_global = false; }},
      {kAttrAddressVector, [](QpAttributes& a) { a.address.sgid_index = 200; }},
      {kAttrTimeout, [](QpAttributes& a) { a.timeout = 32; }},
      {kAttrRetryCount, [](QpAttributes& a) { a.retry_count = 8; }},
      {kAttrRnrRetry, [](QpAttributes& a) { a.rnr_retry = 8; }},
      {kAttrMinRnrTimer, [](QpAttributes& a) { a.min_rnr_timer = 32; }},
      {kAttrMaxRdAtomic, [](QpAttributes& a) { a.max_rd_atomic = 129; }},
      {kAttrMaxDestRdAtomic, [](QpAttributes& a) { a.max_dest_rd_atomic = 129; }},
  }};
  for_each_step([this](QpState from, QpState to) {
    const QpEdge& edge = edge_of(GetParam(), from, to);
    for (const Bad& bad : kBad) {
      if (!edge.valid || ((edge.required | edge.optional) & bad.bit) == 0) continue;
      QpAttributes attributes = good();
      bad.spoil(attributes);
      expect(from, to, kAttrState | edge.required | bad.bit, attributes, false);
      if (HasFatalFailure()) return;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Types, ModifyTest, ::testing::ValuesIn(kQpTypes),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

}  // namespace
}  // namespace verbena::engine
