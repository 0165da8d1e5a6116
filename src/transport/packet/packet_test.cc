// Packet sockets on a wire of their own; where this user may not make one, they are skipped.
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <net/if.h>
#include <poll.h>

#include "transport/packet/packet_listener.h"
#include "transport/packet/packet_sender.h"
#include "transport/packet/packet_socket.h"
#include "transport/testing.h"

namespace verbena::transport {
namespace {

using testing::Batch;
using testing::Bytes;
using testing::bytes_of;
using testing::Drops;
using testing::text_of;

class Frames final : public FrameReceiver {
 public:
  Receipt on_frame(ConstBytes frame) noexcept override {
    if (full) return Receipt::kLater;
    all.push_back(text_of(frame));
    return Receipt::kTaken;
  }
  std::vector<std::string> all;
  bool full = false;
};

void ip(const std::string& words) {
  EXPECT_EQ(std::system(("ip " + words).c_str()), 0) << words;
}

const std::string kMacs = "\2Dest!\2From!";

// Before that the kernel throws away what is sent on it.
void wait_until_up(const std::string& interface) {
  const std::string asks =
      "timeout 10 sh -c 'until ip -o link show " + interface + " | grep -q \"state UP\"; do sleep 0.02; done'";
  EXPECT_EQ(std::system(asks.c_str()), 0) << interface << " does not come up";
}

// By netlink: sysfs is that of another namespace, and the flags leave out what a packet socket asks for.
bool is_promiscuous(const std::string& interface) {
  return std::system(("ip -d -o link show " + interface + " | grep -q 'promiscuity [1-9]'").c_str()) == 0;
}

// MAC addresses that nobody has, a type that no protocol has, and some text.
std::string frame(const std::string& text) {
  return kMacs + "\x88\xb5" + text;
}

class PacketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::in_own_network()) GTEST_SKIP() << "no network namespace of its own";
    ip("link add left type veth peer name right");
    ip("link set left up");
    ip("link set right up");
    wait_until_up("left");
    wait_until_up("right");
    left_ = ::if_nametoindex("left");
    right_ = ::if_nametoindex("right");
    auto sender = PacketSender::open(left_, drops_, forks_);
    ASSERT_TRUE(sender) << sender.error().message;
    sender_ = std::move(*sender);
    auto listener = PacketListener::open(right_, drops_, forks_);
    ASSERT_TRUE(listener) << listener.error().message;
    listener_ = std::move(*listener);
  }
  void TearDown() override {
    if (testing::in_own_network()) ip("link delete left");
  }

  SendResult send(const std::vector<std::string>& frames) {
    Batch batch;
    for (const auto& one : frames) batch.add({}, bytes_of(one));
    return sender_->send(batch.get(), {});
  }
  // Takes what has come with the marked type until there are `wanted`: the kernel also sends some of its own.
  std::vector<std::string> take(PacketListener& from, std::size_t wanted) {
    std::vector<std::string> ours;
    for (int round = 0; round < 200 && ours.size() < wanted; ++round) {
      pollfd event{from.fd(), POLLIN, 0};
      ::poll(&event, 1, 10);
      from.receive(frames_, 64);
      for (const auto& one : frames_.all) {
        if (one.substr(0, 6) == frame("").substr(0, 6)) ours.push_back(one);
      }
      frames_.all.clear();
    }
    return ours;
  }

  unsigned left_ = 0;
  unsigned right_ = 0;
  Drops drops_;
  ForkSet forks_;
  Frames frames_;
  std::unique_ptr<PacketSender> sender_;
  std::unique_ptr<PacketListener> listener_;
};

using Texts = std::vector<std::string>;

TEST_F(PacketTest, FramesArriveAsTheyWereSentAndInOrder) {
  Texts sent;
  for (int i = 0; i < 40; ++i) sent.push_back(frame("number " + std::to_string(i)));
  const SendResult result = send(sent);
  EXPECT_EQ(result.taken, sent.size());
  EXPECT_FALSE(result.full);
  EXPECT_EQ(take(*listener_, sent.size()), sent);
  EXPECT_EQ(drops_.total(), 0U);
}

TEST_F(PacketTest, ATagStandsWhereItStoodOnTheWire) {
  const std::string tagged = kMacs + std::string("\x81\x00\x60\x64\x88\xb5", 6) + "tagged";
  const std::string twice = kMacs + std::string("\x88\xa8\x00\x07\x81\x00\x60\x64\x88\xb5", 10) + "twice";
  send({tagged, twice, frame("plain")});
  EXPECT_EQ(take(*listener_, 3), (Texts{tagged, twice, frame("plain")}));
}

TEST_F(PacketTest, WhatThisHostSendsIsNotAmongThem) {
  auto here = PacketListener::open(left_, drops_, forks_);
  ASSERT_TRUE(here);
  send({frame("out")});
  EXPECT_EQ(take(*listener_, 1), Texts{frame("out")});
  frames_.all.clear();
  EXPECT_EQ(take(**here, 1), Texts{});
}

TEST_F(PacketTest, WhatFindsNoRoomIsOfferedAgainAsItWas) {
  const std::string tagged = kMacs + std::string("\x81\x00\x60\x64\x88\xb5", 6) + "tagged";
  send({tagged, frame("next")});
  frames_.full = true;
  pollfd event{listener_->fd(), POLLIN, 0};
  ::poll(&event, 1, 1000);
  EXPECT_EQ(listener_->receive(frames_, 64), 0U);
  EXPECT_EQ(listener_->receive(frames_, 64), 0U);
  frames_.full = false;
  EXPECT_EQ(take(*listener_, 2), (Texts{tagged, frame("next")}));
}

TEST_F(PacketTest, WhatCannotBeSentIsCountedByReason) {
  const std::string longer = frame(std::string(1600, 'x'));
  EXPECT_EQ(send({longer, frame("behind it")}).taken, 2U);
  EXPECT_EQ(drops_.of(Drop::kDatagramTooLong), 1U);
  EXPECT_EQ(take(*listener_, 1), Texts{frame("behind it")});
  EXPECT_EQ(drops_.sentences().size(), 1U);
  ip("link set left down");
  EXPECT_EQ(send({frame("down")}).taken, 1U);
  EXPECT_EQ(drops_.of(Drop::kPortDown), 1U);
  ip("link set left up");
  wait_until_up("left");
  EXPECT_EQ(send({frame("up again")}).taken, 1U);
  EXPECT_EQ(take(*listener_, 1), Texts{frame("up again")});
}

TEST_F(PacketTest, TheInterfaceIsMadeToLetFramesThrough) {
  const FrameReach everything{FrameReach::Kind::kEverything};
  ASSERT_FALSE(is_promiscuous("right"));
  EXPECT_TRUE(listener_->reach(everything));
  EXPECT_TRUE(listener_->reach(everything));
  listener_->leave(everything);
  EXPECT_TRUE(is_promiscuous("right"));
  listener_->leave(everything);
  EXPECT_FALSE(is_promiscuous("right"));
  EXPECT_TRUE(listener_->reach({FrameReach::Kind::kAddress, {2, 0, 0, 0, 0, 9}}));
  EXPECT_TRUE(listener_->reach({FrameReach::Kind::kGroup, {1, 0, 0x5e, 0, 0, 9}}));
  EXPECT_TRUE(listener_->reach({FrameReach::Kind::kAllGroups}));
}

TEST_F(PacketTest, AnInterfaceThatIsNotThereIsNamed) {
  const auto refused = open_packet_socket(99'999, forks_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().system_errno, ENODEV);
  EXPECT_NE(refused.error().message.find("99999"), std::string::npos);
}

}  // namespace
}  // namespace verbena::transport
