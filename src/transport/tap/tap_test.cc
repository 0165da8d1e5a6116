#include "transport/tap/tap.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "transport/tap/pcapng.h"
#include "transport/testing.h"

namespace verbena::transport {
namespace {

using testing::Bytes;
using testing::bytes_of;
using testing::Drops;
using ::testing::HasSubstr;

class TemporaryFile {
 public:
  TemporaryFile() {
    auto text = (std::filesystem::temp_directory_path() / "verbena-tap-XXXXXX").string();
    const int fd = ::mkstemp(text.data());
    EXPECT_GE(fd, 0);
    ::close(fd);
    path_ = text;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }
  Bytes content() const {
    std::ifstream file(path_, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    return bytes_of(text);
  }

 private:
  std::string path_;
};

struct Block {
  std::uint32_t type = 0;
  Bytes body;
};

std::uint32_t number_at(const Bytes& bytes, std::size_t at) {
  std::uint32_t number = 0;
  EXPECT_LE(at + 4, bytes.size());
  std::memcpy(&number, bytes.data() + at, 4);
  return number;
}

// Every block of a file; its two lengths must agree, and nothing may be left over.
std::vector<Block> blocks_of(const Bytes& file) {
  std::vector<Block> blocks;
  for (std::size_t at = 0; at < file.size();) {
    const auto length = number_at(file, at + 4);
    EXPECT_EQ(length % 4, 0U);
    if (length < 12 || at + length > file.size()) {
      ADD_FAILURE() << "a block of " << length << " bytes at " << at;
      break;
    }
    EXPECT_EQ(number_at(file, at + length - 4), length);
    const auto begin = file.begin() + static_cast<std::ptrdiff_t>(at);
    blocks.push_back({number_at(file, at), Bytes(begin + 8, begin + length - 4)});
    at += length;
  }
  return blocks;
}

TEST(Tap, WritesOneSectionWithOneInterfaceAndAPacketABlock) {
  const TemporaryFile file;
  Drops drops;
  const auto tap = Tap::open(file.path(), drops);
  ASSERT_TRUE(tap) << tap.error().message;
  const auto head = bytes_of("IPUDP");
  const auto first = bytes_of("BTH");
  const auto second = bytes_of("payload");
  const ConstBytes parts[] = {first, {}, second};
  (*tap)->write(Direction::kOut, head, parts, 0x0123456789abcdef);
  (*tap)->write(Direction::kIn, head, {}, 5);

  const auto blocks = blocks_of(file.content());
  ASSERT_EQ(blocks.size(), 4U);
  EXPECT_EQ(blocks[0].type, 0x0a0d0d0aU);
  EXPECT_EQ(number_at(blocks[0].body, 0), 0x1a2b3c4dU);
  EXPECT_EQ(blocks[1].type, 1U);
  EXPECT_EQ(number_at(blocks[1].body, 0) & 0xffff, 101U) << "raw IP";
  const auto& packet = blocks[2].body;
  EXPECT_EQ(blocks[2].type, 6U);
  EXPECT_EQ(number_at(packet, 4), 0x01234567U);
  EXPECT_EQ(number_at(packet, 8), 0x89abcdefU);
  EXPECT_EQ(number_at(packet, 12), 15U);
  EXPECT_EQ(number_at(packet, 16), 15U);
  EXPECT_EQ(testing::text_of(std::span(packet).subspan(20, 15)), "IPUDPBTHpayload");
  EXPECT_EQ(number_at(packet, 36), 0x00040002U) << "option: flags, 4 bytes";
  EXPECT_EQ(number_at(packet, 40), 2U) << "outbound";
  EXPECT_EQ(number_at(blocks[3].body, 12), 5U);
  EXPECT_EQ(number_at(blocks[3].body, 32), 1U) << "inbound";
}

TEST(Tap, CutsAPacketThatNoInterfaceCarries) {
  const TemporaryFile file;
  Drops drops;
  const auto tap = Tap::open(file.path(), drops);
  const Bytes huge(20000);
  const ConstBytes part = huge;
  (*tap)->write(Direction::kOut, bytes_of("head"), {&part, 1}, 0);
  const auto blocks = blocks_of(file.content());
  ASSERT_EQ(blocks.size(), 3U);
  EXPECT_EQ(number_at(blocks[2].body, 12), pcapng::kMaxPacket);
  EXPECT_EQ(number_at(blocks[2].body, 16), 20004U);
}

TEST(Tap, IsSharedByThreadsAndProcesses) {
  constexpr int kEach = 300;
  const TemporaryFile file;
  auto record = [&] {
    Drops drops;
    const auto tap = Tap::open(file.path(), drops);
    if (!tap) return 1;
    for (int i = 0; i < kEach; ++i) {
      const Bytes bytes(static_cast<std::size_t>(i));
      const ConstBytes part = bytes;
      (*tap)->write(Direction::kOut, bytes_of("head"), {&part, 1}, i);
    }
    return drops.sentences().empty() ? 0 : 1;
  };
  testing::Child one(record);
  testing::Child two(record);
  EXPECT_EQ(record(), 0);
  EXPECT_EQ(one.wait(), 0);
  EXPECT_EQ(two.wait(), 0);
  std::thread first(record);
  std::thread second(record);
  first.join();
  second.join();
  const auto blocks = blocks_of(file.content());
  EXPECT_EQ(blocks.size(), 2U + 5 * kEach);
}

TEST(Tap, LeavesAFileOfAnotherKindAlone) {
  const TemporaryFile file;
  std::ofstream(file.path()) << "my precious notes, longer than the head of any recording would ever be, for sure";
  const auto before = file.content();
  Drops drops;
  const auto tap = Tap::open(file.path(), drops);
  ASSERT_FALSE(tap);
  EXPECT_EQ(tap.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(tap.error().message, HasSubstr(file.path()));
  EXPECT_EQ(file.content(), before);
}

TEST(Tap, RefusesARecordingThatWasCutAndTakesAWholeOne) {
  const TemporaryFile file;
  Drops drops;
  const Bytes bytes(1000);
  const ConstBytes part = bytes;
  const auto record = [&] {
    const auto tap = Tap::open(file.path(), drops);
    if (tap) (*tap)->write(Direction::kOut, bytes_of("head"), {&part, 1}, 0);
    return tap.has_value() ? std::string() : tap.error().message;
  };
  EXPECT_EQ(record(), "");
  EXPECT_EQ(record(), "");
  const auto whole = file.content();
  for (const std::size_t missing : {1U, 4U, 500U}) {
    ASSERT_EQ(::truncate(file.path().c_str(), static_cast<off_t>(whole.size() - missing)), 0);
    EXPECT_THAT(record(), HasSubstr("was cut")) << missing;
    EXPECT_EQ(file.content().size(), whole.size() - missing) << "and nothing is appended";
  }
}

TEST(Tap, SaysWhatIsWrongWithAPath) {
  Drops drops;
  const auto tap = Tap::open("/nonexistent/trace.pcapng", drops);
  ASSERT_FALSE(tap);
  EXPECT_THAT(tap.error().message, HasSubstr("/nonexistent/trace.pcapng"));
}

TEST(Tap, IsCheckedAsItIsOpened) {
  const TemporaryFile file;
  EXPECT_TRUE(Tap::check(file.path()));
  EXPECT_TRUE(Tap::check(file.path())) << "what the first made is ours";
  Drops drops;
  EXPECT_TRUE(Tap::open(file.path(), drops));
  EXPECT_TRUE(Tap::check("/dev/null"));
  for (const char* path : {"/nonexistent/folder/file", "/", "/etc/passwd"}) {
    const auto checked = Tap::check(path);
    ASSERT_FALSE(checked) << path;
    EXPECT_THAT(checked.error().message, HasSubstr(path));
  }
}

TEST(Tap, ExplainsAFailureOnceAndGoesOn) {
  const TemporaryFile file;
  testing::Child limited([&] {
    Drops drops;
    const auto tap = Tap::open(file.path(), drops);
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    if (!tap || ::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    const Bytes bytes(1000);
    const ConstBytes part = bytes;
    for (int i = 0; i < 10; ++i) (*tap)->write(Direction::kOut, bytes_of("head"), {&part, 1}, 0);
    return drops.sentences().size() == 1 ? 0 : 2;
  });
  EXPECT_EQ(limited.wait(), 0);
}

}  // namespace
}  // namespace verbena::transport
