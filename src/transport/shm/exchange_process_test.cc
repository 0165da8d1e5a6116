// What other processes do to an exchange: die, stop, fork, lie, belong to somebody else, ask for counters.
#include <array>
#include <cstring>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "base/drop.h"
#include "host/packet_ring.h"
#include "transport/shm/counter_memory.h"
#include "transport/shm/exchange.h"
#include "transport/shm/shared_memory.h"
#include "transport/shm/slot_socket.h"
#include "transport/testing.h"

namespace verbena::transport {
namespace {

using testing::Batch;
using testing::Bytes;
using testing::Child;
using testing::Drops;
using testing::Recorder;

constexpr std::size_t kAll = 1000;

std::unique_ptr<Exchange> open_exchange(DropCounter& drops) {
  ExchangeOptions options;
  options.ring_capacity = 1 << 14;
  auto exchange = Exchange::open(options, drops);
  return exchange ? std::move(*exchange) : nullptr;
}

// Tells another process something by a byte.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0); }
  ~Pipe() {
    for (const int end : ends_) ::close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void tell(std::uint8_t what = 1) { EXPECT_EQ(::write(ends_[1], &what, 1), 1); }
  std::uint8_t hear() {
    std::uint8_t what = 0;
    return ::read(ends_[0], &what, 1) == 1 ? what : 0;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

Bytes numbered(std::uint32_t number) {
  Bytes bytes(4 + number % 900, static_cast<std::byte>(number));
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

// Sends without end, as fast as the receiver takes.
int send_for_ever(Slot to) {
  Drops drops;
  const auto exchange = open_exchange(drops);
  if (!exchange) return 1;
  for (std::uint32_t i = 0;;) {
    Batch batch;
    batch.add(testing::example_envelope(), numbered(i));
    if (exchange->send(to, batch.get(), {}).sent.taken == 1) ++i;
  }
}

TEST(ExchangeProcesses, ReceiveIntactDatagramsFromASenderThatIsKilledInMidWrite) {
  Drops drops;
  const auto exchange = open_exchange(drops);
  const auto before = testing::open_descriptors();
  for (int round = 0; round < 10; ++round) {
    Recorder recorder;
    Child sender([&] { return send_for_ever(exchange->slot()); });
    while (recorder.all.size() < 500U + static_cast<std::size_t>(round) * 37) {
      exchange->serve();
      exchange->receive(recorder, 16);
    }
    sender.kill_now();
    do {
      exchange->serve();
    } while (exchange->receive(recorder, kAll) != 0);
    for (std::uint32_t i = 0; i < recorder.all.size(); ++i) ASSERT_EQ(recorder.all[i].bytes, numbered(i)) << i;
  }
  EXPECT_EQ(testing::open_descriptors(), before);
  EXPECT_EQ(drops.total(), 0U);
}

TEST(ExchangeProcesses, AreNotBlockedByAReceiverThatStopped) {
  Drops drops;
  Pipe ready;
  const auto exchange = open_exchange(drops);
  Child receiver([&] {
    Drops others;
    const auto there = open_exchange(others);
    ready.tell(there->slot().value());
    Recorder recorder;
    for (;;) {
      there->serve();
      there->receive(recorder, kAll);
      std::this_thread::yield();
    }
    return 0;
  });
  const Slot slot(ready.hear());
  ASSERT_NE(slot, Slot{});
  const Batch batch({std::string(1000, 'x')});
  ASSERT_EQ(exchange->send(slot, batch.get(), {}).sent.taken, 1U);
  ::kill(receiver.pid(), SIGSTOP);
  int status = 0;
  ::waitpid(receiver.pid(), &status, WUNTRACED);
  Instant now{0};
  while (!exchange->send(slot, batch.get(), now).sent.full) continue;
  now = now + std::chrono::milliseconds(100);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(exchange->send(slot, batch.get(), now).sent.taken, 1U);
  EXPECT_EQ(drops.of(Drop::kPeerStalled), 100U);

  ::kill(receiver.pid(), SIGCONT);
  std::uint64_t before = 0;
  do {  // until it takes again
    before = drops.of(Drop::kPeerStalled);
    std::this_thread::yield();
    EXPECT_EQ(exchange->send(slot, batch.get(), now).sent.taken, 1U);
  } while (drops.of(Drop::kPeerStalled) != before);
}

TEST(ExchangeProcesses, NoticeTheDeathOfAReceiver) {
  Drops drops;
  Pipe ready;
  const auto exchange = open_exchange(drops);
  Child receiver([&] {
    Drops others;
    const auto there = open_exchange(others);
    ready.tell(there->slot().value());
    ::pause();
    return 0;
  });
  const Slot slot(ready.hear());
  EXPECT_EQ(exchange->send(slot, Batch({"a", "b"}).get(), {}).sent.taken, 2U);
  receiver.kill_now();
  pollfd one{exchange->fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&one, 1, 10'000), 1);
  exchange->serve();
  EXPECT_EQ(drops.of(Drop::kPeerGone), 2U);
  EXPECT_EQ(exchange->reach(slot, Instant{} + std::chrono::seconds(1)), Reach::kAbsent);
}

TEST(ExchangeProcesses, AChildThatAbandonsHoldsNothing) {
  Drops drops;
  Pipe abandoned;
  Pipe end;
  Recorder recorder;
  const auto other = open_exchange(drops);
  auto exchange = open_exchange(drops);
  const auto slot = exchange->slot();
  other->send(slot, Batch({"before"}).get(), {});
  exchange->serve();
  exchange->receive(recorder, kAll);
  exchange->send(other->slot(), Batch({"to other"}).get(), {});
  other->serve();
  Child child([&] {
    exchange->abandon();
    other->abandon();
    exchange.reset();
    abandoned.tell();
    end.hear();
    return 0;
  });
  abandoned.hear();
  other->send(slot, Batch({"the parent still works"}).get(), {});
  exchange->serve();
  EXPECT_EQ(exchange->receive(recorder, kAll), 1U);
  exchange.reset();
  other->serve();
  EXPECT_EQ(other->reach(slot, Instant{} + std::chrono::seconds(1)), Reach::kAbsent) << "while the child lives";
  end.tell();
}

// Only root can.
bool can_be_another_user() {
  Child child([] { return ::setresuid(65534, 65534, 65534) == 0 ? 0 : 1; });
  return child.wait() == 0;
}

TEST(ExchangeProcesses, OfAnotherUserAreForeign) {
  if (!can_be_another_user()) return;
  Drops drops;
  Pipe ready;
  Pipe end;
  const auto exchange = open_exchange(drops);
  Child stranger([&] {
    if (::setresuid(65534, 65534, 65534) != 0) return 1;
    Drops others;
    const auto there = open_exchange(others);
    const bool refused = there->reach(exchange->slot(), {}) == Reach::kForeign;
    ready.tell(refused ? there->slot().value() : std::uint8_t{0});
    end.hear();
    return 0;
  });
  const Slot slot(ready.hear());
  ASSERT_NE(slot, Slot{}) << "the stranger was let in";
  const auto result = exchange->send(slot, Batch({"x"}).get(), {});
  EXPECT_EQ(result.reach, Reach::kForeign);
  EXPECT_EQ(result.sent.taken, 0U);
  EXPECT_EQ(drops.total(), 0U);
  end.tell();
}

// A connection to `exchange` that says whatever it likes.
class Liar {
 public:
  explicit Liar(const Exchange& exchange) : socket_(std::move(*connect_to_slot(exchange.slot(), forks_))) {}

  void say(const host::Hello& hello, std::vector<int> descriptors) {
    EXPECT_TRUE(send_hello(socket_.get(), hello, descriptors));
  }
  void say(const Bytes& bytes) { EXPECT_GE(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0); }
  bool is_shown_the_door() const {
    char byte = 0;
    return ::recv(socket_.get(), &byte, 1, MSG_DONTWAIT) == 0;
  }
  int socket() const { return socket_.get(); }
  ForkSet& forks() { return forks_; }

 private:
  ForkSet forks_;
  Fd socket_;
};

constexpr std::size_t kRingBytes = host::ring_memory_bytes(host::kMinRingCapacity);
constexpr host::Hello kHello{.kind = host::HelloKind::kOpenRing, .slot = Slot(9), .pid = 1, .memory_bytes = kRingBytes};

TEST(ExchangeProcesses, AreShownTheDoorForEveryLie) {
  Drops drops;
  Recorder recorder;
  const auto exchange = open_exchange(drops);
  const Fd doorbell(::eventfd(0, EFD_CLOEXEC));
  const Fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const Fd unsealed(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), kRingBytes), 0);
  auto good = *create_shared_memory("ring", kRingBytes, OthersMay::kWrite);
  host::format_ring(good.mapping.bytes());
  const auto unformatted = *create_shared_memory("ring", kRingBytes, OthersMay::kWrite);
  const auto read_only = *create_shared_memory("ring", kRingBytes, OthersMay::kOnlyRead);
  const auto before = testing::open_descriptors();

  struct Case {
    const char* what;
    std::function<void(Liar&)> lie;
  };
  auto sized = [](std::uint64_t bytes) {
    auto hello = kHello;
    hello.memory_bytes = bytes;
    return hello;
  };
  auto kind = [](host::HelloKind which) {
    auto hello = kHello;
    hello.kind = which;
    return hello;
  };
  const int bell = doorbell.get();
  const int ring = good.fd.get();
  const std::vector<Case> cases{
      {"noise", [](Liar& l) { l.say(testing::bytes_of("GET / HTTP/1.1\r\n\r\n and so on, longer than a hello")); }},
      {"a cut hello", [](Liar& l) { l.say(testing::bytes_of("VRBH")); }},
      {"no descriptors", [](Liar& l) { l.say(kHello, {}); }},
      {"one descriptor", [&](Liar& l) { l.say(kHello, {ring}); }},
      {"too many",
       [&](Liar& l) {
         l.say(kHello, {ring, bell, bell, bell});
       }},
      {"not sealed",
       [&](Liar& l) {
         l.say(kHello, {unsealed.get(), bell});
       }},
      {"not memory",
       [&](Liar& l) {
         l.say(kHello, {file.get(), bell});
       }},
      {"no ring in it",
       [&](Liar& l) {
         l.say(kHello, {unformatted.fd.get(), bell});
       }},
      {"cannot be written",
       [&](Liar& l) {
         l.say(kHello, {read_only.fd.get(), bell});
       }},
      {"a file for doorbell",
       [&](Liar& l) {
         l.say(kHello, {ring, file.get()});
       }},
      {"swapped",
       [&](Liar& l) {
         l.say(kHello, {bell, ring});
       }},
      {"size 0",
       [&](Liar& l) {
         l.say(sized(0), {ring, bell});
       }},
      {"another size",
       [&](Liar& l) {
         l.say(sized(host::ring_memory_bytes(8192)), {ring, bell});
       }},
      {"no power of two",
       [&](Liar& l) {
         l.say(sized(kRingBytes + 1), {ring, bell});
       }},
      {"endless",
       [&](Liar& l) {
         l.say(sized(~std::uint64_t{0}), {ring, bell});
       }},
      {"an answer", [&](Liar& l) { l.say(kind(host::HelloKind::kCounters), {ring}); }},
      {"counters where none are", [&](Liar& l) { l.say(kind(host::HelloKind::kReadCounters), {}); }},
      {"two hellos",
       [&](Liar& l) {
         l.say(kHello, {ring, bell});
         l.say(kHello, {ring, bell});
       }},
  };
  for (const auto& [what, lie] : cases) {
    Liar liar(*exchange);
    lie(liar);
    exchange->serve();
    exchange->receive(recorder, kAll);
    EXPECT_TRUE(liar.is_shown_the_door()) << what;
  }
  EXPECT_EQ(testing::open_descriptors(), before) << "something was kept";
  EXPECT_TRUE(recorder.all.empty());
}

TEST(ExchangeProcesses, LoseTheirRingWhenTheyWriteNonsenseIntoIt) {
  Drops drops;
  Recorder recorder;
  const auto exchange = open_exchange(drops);
  const Fd doorbell(::eventfd(0, EFD_CLOEXEC));
  auto memory = *create_shared_memory("ring", kRingBytes, OthersMay::kWrite);
  host::format_ring(memory.mapping.bytes());
  Liar liar(*exchange);
  liar.say(kHello, {memory.fd.get(), doorbell.get()});
  exchange->serve();
  const std::uint64_t nonsense = 0x0000'0001'01ff'ffff;
  std::memcpy(memory.mapping.bytes().data() + host::kRingHeaderBytes, &nonsense, sizeof nonsense);
  EXPECT_EQ(exchange->receive(recorder, kAll), 0U);
  EXPECT_EQ(drops.of(Drop::kRingBroken), 1U);
  EXPECT_EQ(drops.sentences().size(), 1U);
  exchange->serve();
  EXPECT_TRUE(liar.is_shown_the_door());
}

TEST(CounterMemory, IsReadByOthersButNotWritten) {
  Drops drops;
  const auto exchange = open_exchange(drops);
  auto counters = CounterMemory::create();
  ASSERT_TRUE(counters) << counters.error().message;
  auto block = (*counters)->add_block("verbena0", kDropRows);
  ASSERT_TRUE(block);
  exchange->set_counter_page((*counters)->fd(), (*counters)->bytes());
  block->add(static_cast<std::size_t>(Drop::kQkeyMismatch), 7);

  Liar reader(*exchange);
  reader.say({.kind = host::HelloKind::kReadCounters, .slot = {}, .pid = 0, .memory_bytes = 0}, {});
  exchange->serve();
  const auto answer = receive_hello(reader.socket(), reader.forks());
  ASSERT_EQ(answer.outcome, ReceivedHello::Outcome::kHello);
  ASSERT_EQ(answer.hello.kind, host::HelloKind::kCounters);
  const int fd = answer.descriptors[0].get();
  const auto bytes = answer.hello.memory_bytes;
  EXPECT_EQ(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
  EXPECT_LT(::write(fd, "x", 1), 0);
  void* page = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  ASSERT_NE(page, MAP_FAILED);
  const auto reading = host::read_counter_page({static_cast<const std::byte*>(page), bytes});
  ASSERT_TRUE(reading) << reading.error().message;
  EXPECT_EQ(reading->pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(reading->blocks[0].rows[static_cast<std::size_t>(Drop::kQkeyMismatch)].value, 7U);
  ::munmap(page, bytes);
  EXPECT_TRUE(reader.is_shown_the_door());
}

}  // namespace
}  // namespace verbena::transport
