#include "cli/control_channel.h"

#include <array>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/session_hello.h"

namespace verbena::cli {
namespace {

using namespace std::chrono_literals;

// Far longer than anything here takes.
const auto kSoon = 20s;

std::pair<ControlChannel, ControlChannel> pair() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {ControlChannel(Descriptor(ends[0])), ControlChannel(Descriptor(ends[1]))};
}

TEST(ControlChannel, CarriesLinesInOrder) {
  auto [left, right] = pair();
  ASSERT_TRUE(left.send_line("one", Deadline::in(kSoon)));
  ASSERT_TRUE(left.send_line("", Deadline::in(kSoon)));
  ASSERT_TRUE(left.send_line("three", Deadline::in(kSoon)));
  for (const char* expected : {"one", "", "three"}) {
    const auto line = right.receive_line(Deadline::in(kSoon));
    ASSERT_TRUE(line) << line.error().message;
    EXPECT_EQ(*line, expected);
  }
}

TEST(ControlChannel, TakesNoHalfLine) {
  auto [left, right] = pair();
  std::string line;
  ASSERT_EQ(::send(left.fd(), "ha", 2, 0), 2);
  EXPECT_FALSE(right.take_line(line).value());
  ASSERT_EQ(::send(left.fd(), "lf\nnext", 7, 0), 7);
  EXPECT_TRUE(right.take_line(line).value());
  EXPECT_EQ(line, "half");
  EXPECT_FALSE(right.take_line(line).value());
}

TEST(ControlChannel, SaysThatTheOtherEndIsGone) {
  auto [left, right] = pair();
  ASSERT_TRUE(left.send_line("last words", Deadline::in(kSoon)));
  left = ControlChannel();
  EXPECT_TRUE(right.receive_line(Deadline::in(kSoon)));
  const auto line = right.receive_line(Deadline::in(kSoon));
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(right.send_line("anybody?", Deadline::in(kSoon)));
}

TEST(ControlChannel, DoesNotWaitBeyondItsDeadline) {
  auto [left, right] = pair();
  const auto line = right.receive_line(Deadline::in(5ms));
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().code, ErrorCode::kTimedOut);
}

TEST(ControlChannel, RefusesALineWithoutEnd) {
  auto [left, right] = pair();
  std::thread writer([&left = left] {
    const std::string endless(kMaxHelloBytes + 8192, 'x');
    static_cast<void>(left.send_line(endless, Deadline::in(kSoon)));
  });
  const auto line = right.receive_line(Deadline::in(kSoon));
  right = ControlChannel();
  writer.join();
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().code, ErrorCode::kInvalidArgument);
}

TEST(ControlChannel, ConnectsOverTcpAndKnowsBothEnds) {
  const auto listener = listen_on(0);
  ASSERT_TRUE(listener) << listener.error().message;
  auto client = ControlChannel::connect("127.0.0.1", port_of(*listener), Deadline::in(kSoon));
  ASSERT_TRUE(client) << client.error().message;
  ControlChannel server(accept_from(*listener));
  ASSERT_GE(server.fd(), 0);
  EXPECT_EQ(server.local_address().gid, *parse_gid("127.0.0.1"));
  EXPECT_EQ(server.peer().find("127.0.0.1:"), 0U) << server.peer();
  ASSERT_TRUE(server.send_line("hello", Deadline::in(kSoon)));
  EXPECT_EQ(client->receive_line(Deadline::in(kSoon)).value(), "hello");
  EXPECT_FALSE(accept_from(*listener));
}

TEST(ControlChannel, SaysThatNobodyListens) {
  std::uint16_t free_port = 0;
  {
    const auto listener = listen_on(0);
    ASSERT_TRUE(listener);
    free_port = port_of(*listener);
  }
  const auto client = ControlChannel::connect("127.0.0.1", free_port, Deadline::in(kSoon));
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, ErrorCode::kUnreachable);
  EXPECT_NE(client.error().message.find("verbena ping --listen"), std::string::npos);
}

TEST(ControlChannel, SaysThatAPortIsTaken) {
  const auto listener = listen_on(0);
  ASSERT_TRUE(listener);
  const auto second = listen_on(port_of(*listener));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kBusy);
}

TEST(ControlChannel, SaysThatANameDoesNotResolve) {
  const auto client = ControlChannel::connect("name.invalid", 1, Deadline::in(kSoon));
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace verbena::cli
