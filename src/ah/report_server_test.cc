#include "ah/report_server.h"

#include <array>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ah/report_text.h"
#include "host/report_name.h"

namespace verbena::ah {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Descriptor connect_to_own() {
  const std::string name = host::to_socket_name({static_cast<std::uint32_t>(::getpid()), 0});
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) return {};
  return socket;
}

void ask(const Descriptor& socket, char request) {
  ASSERT_EQ(1, ::send(socket.get(), &request, 1, MSG_NOSIGNAL));
}

Descriptor take_page(const Descriptor& socket) {
  char letter = 0;
  iovec part{&letter, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  EXPECT_EQ(1, ::recvmsg(socket.get(), &header, MSG_CMSG_CLOEXEC));
  EXPECT_EQ(host::kAskPage, letter);
  int fd = -1;
  if (CMSG_FIRSTHDR(&header) != nullptr) std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof fd);
  return Descriptor(fd);
}

host::CounterPageReading read(const Descriptor& page) {
  const auto bytes = static_cast<std::size_t>(::lseek(page.get(), 0, SEEK_END));
  void* memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, page.get(), 0);
  EXPECT_NE(MAP_FAILED, memory);
  auto reading = host::read_counter_page({static_cast<const std::byte*>(memory), bytes});
  ::munmap(memory, bytes);
  EXPECT_TRUE(reading);
  return reading ? *reading : host::CounterPageReading{};
}

std::string take_dump(const Descriptor& socket) {
  ask(socket, host::kAskDump);
  std::string text;
  for (std::vector<char> packet(host::kLongestDumpPacket);;) {
    const ssize_t size = ::recv(socket.get(), packet.data(), packet.size(), 0);
    if (size <= 0 || (size == 1 && packet[0] == host::kEndOfDump)) return text;
    text.append(packet.data(), static_cast<std::size_t>(size));
  }
}

std::uint64_t value(const host::CounterPageReading& page, std::size_t block, const std::string& name) {
  for (const auto& row : page.blocks.at(block).rows) {
    if (row.name == name) return row.value;
  }
  ADD_FAILURE() << name;
  return 0;
}

class ReportServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = ReportServer::of_this_process();
    ASSERT_TRUE(server) << server.error().message;
    server_ = *server;
  }
  ReportServer::Ticket add(const std::string& name, std::uint64_t* hits, std::size_t rows = 0) {
    return server_->add(ReportSource{.name = name,
                                     .stats =
                                         [hits] {
                                           AhStats stats;
                                           stats.hits = *hits;
                                           stats.creation_us[3] = 2;
                                           return stats;
                                         },
                                     .rows =
                                         [rows] {
                                           AhRow row;
                                           row.destination.gid = Gid::from_ipv4(0x0a000001);
                                           row.last_error = "one\ttwo\nthree";
                                           return std::vector<AhRow>(rows, row);
                                         }});
  }

  std::shared_ptr<ReportServer> server_;
};

TEST_F(ReportServerTest, IsOneForTheProcess) {
  EXPECT_EQ(server_, *ReportServer::of_this_process());
}

TEST_F(ReportServerTest, ShowsCountsInMemoryThatOthersCanOnlyRead) {
  std::uint64_t hits = 7;
  const auto ticket = add("first", &hits);
  const Descriptor socket = connect_to_own();
  ask(socket, host::kAskPage);
  const Descriptor page = take_page(socket);
  ASSERT_TRUE(page);
  EXPECT_EQ("first", read(page).blocks.at(0).name);
  EXPECT_EQ(7U, value(read(page), 0, "hits"));
  EXPECT_EQ(2U, value(read(page), 0, "creation_us_below_16"));
  EXPECT_EQ(static_cast<std::uint32_t>(::getpid()), read(page).pid);

  hits = 9;
  ask(socket, host::kAskPage);
  ASSERT_TRUE(take_page(socket));
  EXPECT_EQ(9U, value(read(page), 0, "hits"));

  EXPECT_EQ(MAP_FAILED, ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, page.get(), 0));
  EXPECT_NE(0, ::ftruncate(page.get(), 0));
  server_->remove(ticket);
}

TEST_F(ReportServerTest, KeepsTheLastValuesOfADirectoryThatIsGone) {
  std::uint64_t hits = 3;
  const auto ticket = add("short-lived", &hits);
  hits = 4;
  server_->remove(ticket);
  const Descriptor socket = connect_to_own();
  ask(socket, host::kAskPage);
  EXPECT_EQ(4U, value(read(take_page(socket)), 0, "hits"));
}

TEST_F(ReportServerTest, ADirectoryThatIsGoneShowsSoAndMakesRoom) {
  const auto source = [](const std::string& name) {
    return ReportSource{.name = name,
                        .stats =
                            [] {
                              AhStats stats;
                              stats.live = 5;
                              stats.created = 6;
                              return stats;
                            },
                        .rows = [] { return std::vector<AhRow>(); }};
  };
  for (int i = 0; i < 1000; ++i) server_->remove(server_->add(source("number " + std::to_string(i))));
  const Descriptor socket = connect_to_own();
  ask(socket, host::kAskPage);
  const Descriptor page = take_page(socket);
  EXPECT_TRUE(read(page).blocks.at(0).ended);
  EXPECT_EQ(0U, value(read(page), 0, "live"));
  EXPECT_EQ(6U, value(read(page), 0, "created"));
  const auto last = server_->add(source("last"));
  ask(socket, host::kAskPage);
  ASSERT_TRUE(take_page(socket));
  EXPECT_EQ("last", read(page).blocks.at(0).name);
  EXPECT_EQ(5U, value(read(page), 0, "live"));
  server_->remove(last);
}

TEST_F(ReportServerTest, ATenantHasTheSumOfItsDirectoriesThoseThatAreGoneIncluded) {
  const int account = 0;
  const auto source = [&account](std::uint64_t live, std::uint64_t created, std::uint64_t oldest_ms) {
    AhStats stats;
    stats.live = live;
    stats.created = created;
    stats.oldest_ms = oldest_ms;
    stats.creation_us[3] = created;
    return ReportSource{.name = "port",
                        .stats = [stats] { return stats; },
                        .rows = [] { return std::vector<AhRow>(); },
                        .account = &account};
  };
  const auto tenant = server_->add(TenantSource{
      .name = "trainer", .budget = [] { return TenantBudget{.handles_limit = 9, .share = 8}; }, .account = &account});
  const auto first = server_->add(source(2, 20, 7));
  const auto second = server_->add(source(3, 30, 5));
  std::uint64_t hits = 0;
  const auto other = add("of no tenant", &hits);
  const Descriptor socket = connect_to_own();
  const auto shown = [&](const char* name) {
    ask(socket, host::kAskPage);
    const auto reading = read(take_page(socket));
    EXPECT_EQ("trainer", reading.blocks.at(0).name);
    return value(reading, 0, name);
  };
  EXPECT_EQ(9U, shown("tenant_handles_limit"));
  EXPECT_EQ(8U, shown("tenant_share"));
  EXPECT_EQ(2U, shown("tenant_directories"));
  EXPECT_EQ(5U, shown("live"));
  EXPECT_EQ(50U, shown("created"));
  EXPECT_EQ(7U, shown("oldest_ms"));
  EXPECT_EQ(50U, shown("creation_us_below_16"));
  server_->remove(first);
  EXPECT_EQ(1U, shown("tenant_directories"));
  EXPECT_EQ(3U, shown("live"));
  EXPECT_EQ(50U, shown("created"));
  EXPECT_EQ(5U, shown("oldest_ms"));
  server_->remove(second);
  server_->remove(tenant);
  EXPECT_EQ(0U, shown("tenant_handles_limit"));
  EXPECT_EQ(50U, shown("created")) << "its last totals, until another takes its place";
  server_->remove(other);
}

TEST_F(ReportServerTest, TellsDirectoriesOfOneNameApart) {
  std::uint64_t hits = 0;
  const auto first = add("twin", &hits, 1);
  const auto second = add("twin", &hits, 1);
  const std::string dump = take_dump(connect_to_own());
  EXPECT_THAT(dump, AllOf(HasSubstr("\ntwin\t"), HasSubstr("\ntwin #2\t")));
  server_->remove(first);
  server_->remove(second);
}

TEST_F(ReportServerTest, DumpsEveryEntryAsOneLine) {
  std::uint64_t hits = 0;
  constexpr std::size_t kRows = 3000;
  const auto ticket = add("large", &hits, kRows);
  const std::string dump = take_dump(connect_to_own());
  EXPECT_THAT(dump, StartsWith("directory\tdestination\tstate"));
  EXPECT_EQ(kRows + 1, static_cast<std::size_t>(std::count(dump.begin(), dump.end(), '\n')));
  EXPECT_THAT(dump, HasSubstr("one two three"));
  server_->remove(ticket);
}

TEST_F(ReportServerTest, EndsAConnectionThatAsksForSomethingElse) {
  for (const char request : {'x', '\0', '\n'}) {
    const Descriptor socket = connect_to_own();
    ask(socket, request);
    char answer = 0;
    EXPECT_EQ(0, ::recv(socket.get(), &answer, 1, 0)) << request;
  }
  EXPECT_THAT(take_dump(connect_to_own()), StartsWith("directory"));
}

TEST_F(ReportServerTest, OutlivesMoreClientsThanItKeeps) {
  std::vector<Descriptor> clients;
  for (int i = 0; i < 40; ++i) {
    clients.push_back(connect_to_own());
    ASSERT_TRUE(clients.back());
    EXPECT_THAT(take_dump(clients.back()), StartsWith("directory"));
  }
}

TEST_F(ReportServerTest, GivesItsNameBackWithItsLastHolder) {
  server_.reset();
  EXPECT_FALSE(connect_to_own());
  SetUp();
  EXPECT_TRUE(connect_to_own());
}

TEST(ReportText, HasAValueForEachRow) {
  EXPECT_EQ(report_rows().size(), report_values(AhStats{}).size());
  EXPECT_EQ(tenant_rows().size(), tenant_values(TenantBudget{}, DirectorySum{}).size());
  for (const CounterRow& row : tenant_rows()) EXPECT_LE(row.name.size(), host::kMaxCounterName) << row.name;
}

TEST(ReportText, HasAWordForEachColumn) {
  const std::string head = dump_head();
  const std::string line = dump_line("a", AhRow{});
  EXPECT_EQ(std::count(head.begin(), head.end(), '\t'), std::count(line.begin(), line.end(), '\t'));
  EXPECT_THAT(dump_line("a\tb", AhRow{}), Not(StartsWith("a\tb")));
}

}  // namespace
}  // namespace verbena::ah
