#include "device/file_watch.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace verbena::device {
namespace {

namespace fs = std::filesystem;

class FileWatchTest : public ::testing::Test {
 protected:
  FileWatchTest() {
    std::string name = (fs::temp_directory_path() / "watch.XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~FileWatchTest() override { fs::remove_all(folder_); }

  fs::path at(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const std::string& text) const { std::ofstream(at(name)) << text; }
  // `name` is a link to `target`, put there in one step.
  void lead(const std::string& target, const std::string& name) const {
    fs::create_symlink(target, at("new_link"));
    fs::rename(at("new_link"), at(name));
  }
  std::unique_ptr<FileWatch> watch(const std::string& name) const {
    auto made = FileWatch::open(at(name).string());
    EXPECT_TRUE(made) << made.error().message;
    return made ? std::move(*made) : nullptr;
  }

  fs::path folder_;
};

TEST_F(FileWatchTest, TellsOfWritesAndOfAnotherFileInItsPlace) {
  write("subnet", "one");
  const auto watched = watch("subnet");
  EXPECT_FALSE(watched->drain());
  write("subnet", "two");
  EXPECT_TRUE(watched->drain());
  EXPECT_FALSE(watched->drain());
  write("other", "three");
  EXPECT_FALSE(watched->drain());
  fs::rename(at("other"), at("subnet"));
  EXPECT_TRUE(watched->drain());
  fs::remove(at("subnet"));
  EXPECT_FALSE(watched->drain());
  write("subnet", "four");
  EXPECT_TRUE(watched->drain());
}

TEST_F(FileWatchTest, WaitsUntilANewFileIsWritten) {
  const auto watched = watch("subnet");
  std::ofstream file(at("subnet"));
  EXPECT_FALSE(watched->drain());
  file << "one";
  file.close();
  EXPECT_TRUE(watched->drain());
}

TEST_F(FileWatchTest, ALinkInItsPlaceIsThereAtOnce) {
  write("one", "one");
  write("two", "two");
  fs::create_symlink("one", at("subnet"));
  const auto watched = watch("subnet");
  fs::remove(at("subnet"));
  watched->drain();
  fs::create_symlink("two", at("subnet"));
  EXPECT_TRUE(watched->drain());
  write("two", "three");
  EXPECT_TRUE(watched->drain()) << "where it leads to now is watched";
  fs::remove(at("subnet"));
  watched->drain();
  fs::create_hard_link(at("one"), at("subnet"));
  EXPECT_TRUE(watched->drain());
}

// subnet -> ..data/subnet, ..data -> one: what is replaced is ..data.
TEST_F(FileWatchTest, FollowsAMountedConfigMap) {
  for (const auto* folder : {"one", "two"}) {
    fs::create_directory(at(folder));
    write(std::string(folder) + "/subnet", folder);
  }
  lead("one", "..data");
  lead("..data/subnet", "subnet");
  const auto watched = watch("subnet");
  lead("two", "..data");
  EXPECT_TRUE(watched->drain());
  fs::remove_all(at("one"));
  EXPECT_FALSE(watched->drain());
  write("two/subnet", "written in place");
  EXPECT_TRUE(watched->drain());
  fs::create_directory(at("one"));
  write("one/subnet", "again");
  lead("one", "..data");
  EXPECT_TRUE(watched->drain());
}

TEST_F(FileWatchTest, FollowsALinkToAnotherFolder) {
  fs::create_directory(at("far"));
  write("far/file", "one");
  lead(at("far/file").string(), "subnet");
  const auto watched = watch("subnet");
  write("far/file", "two");
  EXPECT_TRUE(watched->drain());
  write("far/other", "three");
  lead("far/other", "subnet");
  EXPECT_TRUE(watched->drain());
}

TEST_F(FileWatchTest, EndsWhereLinksGoInACircle) {
  lead("b", "a");
  lead("a", "b");
  const auto watched = watch("a");
  EXPECT_FALSE(watched->drain());
  fs::remove(at("a"));
  write("a", "one");
  EXPECT_TRUE(watched->drain());
}

TEST_F(FileWatchTest, NeedsTheFolder) {
  EXPECT_FALSE(FileWatch::open(at("missing/subnet").string()));
}

}  // namespace
}  // namespace verbena::device
