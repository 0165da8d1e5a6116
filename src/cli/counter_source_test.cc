// A test plays the process that is asked: it listens under the name of a slot and answers as it likes. The slots are
// the last ones, for real processes begin elsewhere; where one is taken the test takes the next.
#include "cli/counter_source.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/drop.h"
#include "cli/clock.h"
#include "cli/descriptor.h"
#include "host/hello.h"
#include "host/slot_name.h"

namespace verbena::cli {
namespace {

using namespace std::chrono_literals;

// Far longer than an answer takes, so that only a process that never answers meets it.
constexpr Duration kPatience = 20s;

class FakeProcess {
 public:
  FakeProcess() {
    for (unsigned number = host::kLastSlot; number >= host::kFirstSlot; --number) {
      if (try_listen(Slot(static_cast<std::uint8_t>(number)))) return;
    }
    ADD_FAILURE() << "no free slot";
  }
  ~FakeProcess() {
    if (thread_.joinable()) thread_.join();
  }

  Slot slot() const { return slot_; }

  // Answers one request; the answer is given the connection.
  void answer_once(std::function<void(int)> answer) {
    thread_ = std::thread([this, answer = std::move(answer)] {
      const Descriptor connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      std::array<std::byte, 64> request{};
      const ssize_t size = ::recv(connection.get(), request.data(), request.size(), 0);
      ASSERT_GT(size, 0);
      const auto hello = host::decode_hello(std::span(request).first(static_cast<std::size_t>(size)));
      ASSERT_TRUE(hello);
      EXPECT_EQ(hello->kind, host::HelloKind::kReadCounters);
      answer(connection.get());
    });
  }
  void wait() { thread_.join(); }
  // The caller owns it.
  int accept() const { return ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC); }

 private:
  bool try_listen(Slot slot) {
    listener_ = Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const std::string name = host::slot_name(slot);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) return false;
    slot_ = slot;
    return ::listen(listener_.get(), 8) == 0;
  }

  Slot slot_;
  Descriptor listener_;
  std::thread thread_;
};

void send_with_descriptors(int connection, std::span<const std::byte> message, std::span<const int> descriptors) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(8 * sizeof(int))> control{};
  iovec part{const_cast<std::byte*>(message.data()), message.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* first = CMSG_FIRSTHDR(&header);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(first), descriptors.data(), descriptors.size_bytes());
  }
  ASSERT_GE(::sendmsg(connection, &header, MSG_NOSIGNAL), 0);
}

std::array<std::byte, host::kHelloBytes> counters_hello(std::uint64_t bytes) {
  host::Hello hello;
  hello.kind = host::HelloKind::kCounters;
  hello.pid = static_cast<std::uint32_t>(::getpid());
  hello.memory_bytes = bytes;
  return host::encode(hello);
}

// A counter page as a process has it: one block, one drop of 7.
Descriptor counter_page(bool sealed) {
  Descriptor memory(::memfd_create("counters", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(memory.get(), static_cast<off_t>(host::kCounterPageBytes)), 0);
  void* mapped = ::mmap(nullptr, host::kCounterPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  EXPECT_NE(mapped, MAP_FAILED);
  host::CounterPageOwner owner;
  owner.pid = static_cast<std::uint32_t>(::getpid());
  owner.start_time_ns = 42;
  owner.process_name = "fake";
  host::CounterPageWriter writer({static_cast<std::byte*>(mapped), host::kCounterPageBytes}, owner);
  auto block = writer.add_block("verbena0", kDropRows);
  EXPECT_TRUE(block);
  block->add(static_cast<std::size_t>(Drop::kUnknownQpn), 7);
  ::munmap(mapped, host::kCounterPageBytes);
  if (sealed) ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  return memory;
}

CounterSurvey ask_one(FakeProcess& process, Duration patience = kPatience) {
  const std::vector<Slot> slots{process.slot()};
  return survey_counters(slots, patience);
}

std::string silence_of(std::function<void(int)> answer) {
  FakeProcess process;
  process.answer_once(std::move(answer));
  const CounterSurvey survey = ask_one(process);
  process.wait();
  EXPECT_TRUE(survey.processes.empty());
  if (survey.silent.size() != 1) {
    ADD_FAILURE() << survey.silent.size() << " silent";
    return {};
  }
  EXPECT_EQ(survey.silent[0].slot, process.slot());
  EXPECT_EQ(survey.silent[0].pid, static_cast<std::uint32_t>(::getpid()));
  return survey.silent[0].reason;
}

TEST(CounterSource, ReadsTheCountersOfAProcess) {
  FakeProcess process;
  process.answer_once([](int connection) {
    const Descriptor page = counter_page(true);
    const std::array<int, 1> descriptors{page.get()};
    send_with_descriptors(connection, counters_hello(host::kCounterPageBytes), descriptors);
  });
  const CounterSurvey survey = ask_one(process);
  process.wait();
  ASSERT_EQ(survey.processes.size(), 1U) << (survey.silent.empty() ? "" : survey.silent[0].reason);
  const ProcessCounters& counters = survey.processes[0];
  EXPECT_EQ(counters.pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(counters.page.process_name, "fake");
  ASSERT_EQ(counters.page.blocks.size(), 1U);
  for (const auto& row : counters.page.blocks[0].rows) EXPECT_EQ(row.value, row.name == "unknown_qpn" ? 7U : 0U);
}

TEST(CounterSource, AProcessWithTwoSlotsIsOneProcess) {
  FakeProcess first;
  FakeProcess second;
  const auto answer = [](int connection) {
    const Descriptor page = counter_page(true);
    const std::array<int, 1> descriptors{page.get()};
    send_with_descriptors(connection, counters_hello(host::kCounterPageBytes), descriptors);
  };
  first.answer_once(answer);
  second.answer_once(answer);
  const std::vector<Slot> slots{second.slot(), first.slot()};
  const CounterSurvey survey = survey_counters(slots, kPatience);
  first.wait();
  second.wait();
  ASSERT_EQ(survey.processes.size(), 1U);
  EXPECT_EQ(survey.processes[0].slots, slots);
}

TEST(CounterSource, AProcessThatIsGoneIsLeftOut) {
  Slot gone;
  {
    const FakeProcess process;
    gone = process.slot();
  }
  const std::vector<Slot> slots{gone};
  const CounterSurvey survey = survey_counters(slots, kPatience);
  EXPECT_TRUE(survey.processes.empty());
  EXPECT_TRUE(survey.silent.empty());
}

TEST(CounterSource, AProcessThatDoesNotAnswerDoesNotHoldItUp) {
  FakeProcess process;  // listens, and never accepts
  const CounterSurvey survey = ask_one(process, 20ms);
  ASSERT_EQ(survey.silent.size(), 1U);
  EXPECT_NE(survey.silent[0].reason.find("does not answer"), std::string::npos) << survey.silent[0].reason;
}

TEST(CounterSource, SaysThatAProcessClosedTheConnection) {
  const std::string reason = silence_of([](int connection) { ::shutdown(connection, SHUT_RDWR); });
  EXPECT_NE(reason.find("without an answer"), std::string::npos) << reason;
}

// As a process does to a stranger: often before the question has left.
TEST(CounterSource, SaysSoHoweverEarlyItClosed) {
  constexpr int kRounds = 200;
  FakeProcess process;
  std::thread turning_away([&] {
    for (int round = 0; round < kRounds; ++round) ::close(process.accept());
  });
  for (int round = 0; round < kRounds; ++round) {
    const CounterSurvey survey = ask_one(process);
    EXPECT_EQ(survey.silent.size(), 1U) << "in round " << round;
  }
  turning_away.join();
}

TEST(CounterSource, SurvivesEveryWrongAnswer) {
  const auto whole = counters_hello(host::kCounterPageBytes);
  for (std::size_t size = 1; size < whole.size(); ++size) {
    silence_of([&](int connection) {
      const Descriptor page = counter_page(true);
      const std::array<int, 1> descriptors{page.get()};
      send_with_descriptors(connection, std::span(whole).first(size), descriptors);
    });
  }
  silence_of([&](int connection) { send_with_descriptors(connection, whole, {}); });  // no descriptor
  silence_of([&](int connection) {                                                    // too many
    const Descriptor page = counter_page(true);
    const std::vector<int> descriptors(4, page.get());
    send_with_descriptors(connection, whole, descriptors);
  });
}

TEST(CounterSource, RefusesMemoryThatCouldShrinkUnderIt) {
  const std::string reason = silence_of([](int connection) {
    const Descriptor page = counter_page(false);
    const std::array<int, 1> descriptors{page.get()};
    send_with_descriptors(connection, counters_hello(host::kCounterPageBytes), descriptors);
  });
  EXPECT_NE(reason.find("sealed"), std::string::npos) << reason;
}

TEST(CounterSource, RefusesWhatIsNoMemory) {
  const std::string reason = silence_of([](int connection) {
    const Descriptor file(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
    const std::array<int, 1> descriptors{file.get()};
    send_with_descriptors(connection, counters_hello(host::kCounterPageBytes), descriptors);
  });
  EXPECT_NE(reason.find("sealed"), std::string::npos) << reason;
}

TEST(CounterSource, RefusesAPageOfGarbage) {
  silence_of([](int connection) {
    const Descriptor memory(::memfd_create("garbage", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(::ftruncate(memory.get(), 8192), 0);
    ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK);
    const std::array<int, 1> descriptors{memory.get()};
    send_with_descriptors(connection, counters_hello(8192), descriptors);
  });
}

TEST(CounterSource, LeaksNoDescriptor) {
  const int before = ::dup(0);
  ::close(before);
  silence_of([](int connection) {
    const Descriptor page = counter_page(true);
    const std::vector<int> descriptors(3, page.get());
    send_with_descriptors(connection, counters_hello(host::kCounterPageBytes), descriptors);
  });
  const int after = ::dup(0);
  ::close(after);
  EXPECT_EQ(after, before);
}

TEST(ListedSlots, AreFoundAmongOtherSockets) {
  FakeProcess process;
  const std::string name = host::slot_name(process.slot()).substr(1);
  const std::vector<std::string> lines{
      "Num       RefCount Protocol Flags    Type St Inode Path",
      "0000000000000000: 00000002 00000000 00010000 0005 01 20001 @" + name,
      "0000000000000000: 00000002 00000000 00010000 0001 01 20002 /run/dbus/socket",
      "0000000000000000: 00000003 00000000 00000000 0005 03 20003 @" + name,
      "garbage",
      "",
      "0000000000000000: 00000002 00000000 00010000 0005 01 20004 @verbena/1/slot/999"};
  EXPECT_EQ(listed_slots(lines), std::vector<Slot>{process.slot()});
  EXPECT_TRUE(listed_slots({}).empty());
}

TEST(CounterSource, FindsProcessesInProcNetUnix) {
  FakeProcess process;
  const auto survey = survey_counters(20ms);
  ASSERT_TRUE(survey) << survey.error().message;
  bool found = false;
  for (const SilentProcess& silent : survey->silent) found = found || silent.slot == process.slot();
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace verbena::cli
