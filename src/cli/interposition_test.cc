#include "cli/interposition.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "cli/device_settings.h"

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;

const Interposition kPlain{"/v/lib/libverbena-rnic.so.0", "/v/lib/verbena/dropin", ""};
const Interposition kSanitized{"/v/lib/libverbena-rnic.so.0", "/v/lib/verbena/dropin", "/gcc/libasan.so"};

TEST(Preload, StandsInFrontOfWhatIsThere) {
  EXPECT_EQ(compose_preload(kPlain, ""), "/v/lib/libverbena-rnic.so.0");
  EXPECT_EQ(compose_preload(kPlain, "/a.so /b.so"), "/v/lib/libverbena-rnic.so.0:/a.so:/b.so");
  EXPECT_EQ(compose_preload(kPlain, ":/a.so::/b.so: "), "/v/lib/libverbena-rnic.so.0:/a.so:/b.so");
}

TEST(Preload, ASanitizerThatIsThereStaysFirst) {
  EXPECT_EQ(compose_preload(kPlain, "/a.so:/usr/lib/libasan.so.8"),
            "/usr/lib/libasan.so.8:/v/lib/libverbena-rnic.so.0:/a.so");
  EXPECT_EQ(compose_preload(kPlain, "libtsan.so.2"), "libtsan.so.2:/v/lib/libverbena-rnic.so.0");
  EXPECT_EQ(compose_preload(kSanitized, "/usr/lib/libasan.so.8"), "/usr/lib/libasan.so.8:/v/lib/libverbena-rnic.so.0");
}

TEST(Preload, OurOwnSanitizerIsPutFirst) {
  EXPECT_EQ(compose_preload(kSanitized, "/a.so"), "/gcc/libasan.so:/v/lib/libverbena-rnic.so.0:/a.so");
}

TEST(Preload, IsNotRepeated) {
  EXPECT_EQ(compose_preload(kPlain, "/old/libverbena-rnic.so.0:/a.so"), "/v/lib/libverbena-rnic.so.0:/a.so");
  const std::string once = compose_preload(kSanitized, "/a.so");
  EXPECT_EQ(compose_preload(kSanitized, once), once);
}

TEST(LibraryPath, StandsInFrontOfWhatIsThereAndNeverMeansTheCurrentDirectory) {
  EXPECT_EQ(compose_library_path(kPlain, ""), "/v/lib/verbena/dropin");
  EXPECT_EQ(compose_library_path(kPlain, "/opt/lib"), "/v/lib/verbena/dropin:/opt/lib");
  EXPECT_EQ(compose_library_path(kPlain, "/v/lib/verbena/dropin:/opt/lib"), "/v/lib/verbena/dropin:/opt/lib");
}

class Places : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "verbena-cli-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    fs::create_directories(root_ / "bin");
  }
  void TearDown() override { fs::remove_all(root_); }

  void install(const fs::path& directory) {
    fs::create_directories(directory / "verbena" / "dropin");
    std::ofstream(directory / "libverbena-rnic.so.0") << "library";
    fs::create_symlink("../../libverbena-rnic.so.0", directory / "verbena" / "dropin" / "libibverbs.so.1");
  }

  fs::path root_;
};

TEST_F(Places, FindsTheLibraryOfTheBuildTree) {
  install(root_ / "lib");
  const auto found = find_interposition(root_ / "bin" / "verbena");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->library, root_ / "lib" / "libverbena-rnic.so.0");
  EXPECT_EQ(found->drop_in, root_ / "lib" / "verbena" / "dropin");
}

TEST_F(Places, FindsTheInstalledLibrary) {
  const fs::path directory = (root_ / "bin" / installed_library_directory()).lexically_normal();
  install(directory);
  const auto found = find_interposition(root_ / "bin" / "verbena");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->library, directory / "libverbena-rnic.so.0");
}

TEST_F(Places, SaysWhereItLooked) {
  const auto found = find_interposition(root_ / "bin" / "verbena");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kNotFound);
  EXPECT_NE(found.error().message.find((root_ / "lib").string()), std::string::npos) << found.error().message;
}

TEST_F(Places, SaysThatTheDropInIsMissing) {
  install(root_ / "lib");
  fs::remove(root_ / "lib" / "verbena" / "dropin" / "libibverbs.so.1");
  const auto found = find_interposition(root_ / "bin" / "verbena");
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message.find("drop-in"), std::string::npos) << found.error().message;
}

TEST_F(Places, RefusesAPathThatTheLinkerWouldSplit) {
  fs::create_directories(root_ / "a b" / "bin");
  install(root_ / "a b" / "lib");
  const auto found = find_interposition(root_ / "a b" / "bin" / "verbena");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kInvalidArgument);
}

TEST(DeviceSettings, OnlyWhatWasSaidIsSet) {
  EXPECT_TRUE(to_variables({}, "/here").empty());
}

TEST(DeviceSettings, EachHasItsVariable) {
  DeviceSettings settings;
  settings.devices = "eth0,lo";
  settings.impair = "loss=5%";
  settings.pcap = "run.pcap";
  settings.log = "debug";
  settings.no_shm = true;
  settings.no_udp = true;
  const Variables expected{
      {"VERBENA_DEVICES", "eth0,lo"}, {"VERBENA_IMPAIR", "loss=5%"}, {"VERBENA_PCAP", "/here/run.pcap"},
      {"VERBENA_SHM", "off"},         {"VERBENA_UDP", "off"},        {"VERBENA_LOG", "debug"}};
  EXPECT_EQ(to_variables(settings, "/here"), expected);
}

TEST(DeviceSettings, AnAbsoluteCaptureFileStaysWhereItIs) {
  DeviceSettings settings;
  settings.pcap = "/tmp/run.pcap";
  EXPECT_EQ(to_variables(settings, "/here"), (Variables{{"VERBENA_PCAP", "/tmp/run.pcap"}}));
}

}  // namespace
}  // namespace verbena::cli
