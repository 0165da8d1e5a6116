// The ways in: LD_PRELOAD, the drop-in directory in LD_LIBRARY_PATH, and linked in front of the real library. In each,
// every versioned name of the map resolves to us, what only the real library has resolves to it, and programs that know
// nothing of us see our device.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace verbena::abi {
namespace {

const std::string kLibraryDirectory = VERBENA_LIBRARY_DIRECTORY;
const std::string kPrograms = VERBENA_PROGRAM_DIRECTORY;
const std::string kSource = VERBENA_SOURCE_DIRECTORY;
const std::string kPreload = "LD_PRELOAD=" + kLibraryDirectory + "/libverbena-rnic.so.0 ";
const std::string kDropIn = "LD_LIBRARY_PATH=" + kLibraryDirectory + "/verbena/dropin ";

struct Outcome {
  std::string output;
  int status;
};

Outcome run(const std::string& command) {
  FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {"", -1};
  Outcome result{"", 0};
  std::array<char, 4096> buffer;
  while (const std::size_t length = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    result.output.append(buffer.data(), length);
  }
  result.status = ::pclose(pipe);
  return result;
}

std::string our_file() {
  return std::filesystem::canonical(kLibraryDirectory + "/libverbena-rnic.so.0");
}

// Every name of the map, and two that only the real library has.
void expect_resolution(const std::string& environment, const std::string& program) {
  const Outcome looked_up = run("( " + kSource +
                                "/tools/check-exports --list; echo ibv_cmd_create_qp IBVERBS_PRIVATE_34; "
                                "echo ibv_create_qp IBVERBS_1.0 ) | env " +
                                environment + kPrograms + "/" + program);
  ASSERT_EQ(0, looked_up.status) << looked_up.output;
  std::istringstream lines(looked_up.output);
  std::string name;
  std::string version;
  std::string file;
  int ours = 0;
  int real = 0;
  while (lines >> name >> version >> file) {
    if (file == our_file()) {
      ++ours;
    } else {
      ++real;
      EXPECT_TRUE(name == "ibv_cmd_create_qp" || (name == "ibv_create_qp" && version == "IBVERBS_1.0"))
          << name << "@" << version << " in " << file;
      EXPECT_NE(std::string::npos, file.find("libibverbs.so.1")) << name << " in " << file;
    }
  }
  EXPECT_GT(ours, 70);
  EXPECT_EQ(2, real);
}

TEST(Modes, UnderPreloadEveryExportIsOurs) {
  expect_resolution(kPreload, "which_library needed");
}
TEST(Modes, ThroughTheDropInDirectoryEveryExportIsOurs) {
  expect_resolution(kDropIn, "which_library needed");
}
TEST(Modes, LinkedInFrontEveryExportIsOurs) {
  expect_resolution("", "which_library_in_front needed");
}

struct Way {
  const char* name;
  std::string environment;
  std::vector<std::string> libraries;  // that dlopen() is called with
};

std::vector<Way> ways() {
  return {{"preload", kPreload, {"libibverbs.so.1"}},
          {"drop-in", kDropIn, {"libibverbs.so.1", "libibverbs.so"}},
          {"both", kPreload + kDropIn, {"libibverbs.so.1", "libibverbs.so"}}};
}

TEST(Modes, AProgramThatLoadsVerbsAtRunTimeGetsOurs) {
  for (const Way& way : ways()) {
    for (const std::string& library : way.libraries) {
      SCOPED_TRACE(std::string(way.name) + " " + library);
      expect_resolution(way.environment, "which_library_unlinked dlopen " + library);
    }
  }
}

TEST(Modes, AProgramThatLoadsVerbsAtRunTimeRunsOnOurDevice) {
  for (const Way& way : ways()) {
    for (const std::string& library : way.libraries) {
      SCOPED_TRACE(std::string(way.name) + " " + library);
      const Outcome loaded = run("env VERBENA_DEVICES=lo " + way.environment + kPrograms + "/load_verbs " + library);
      EXPECT_EQ(0, loaded.status) << loaded.output;
      // The libc calls are ours only where the library is loaded for the whole process.
      const bool has_sysfs = way.environment.find("LD_PRELOAD") != std::string::npos;
      EXPECT_NE(std::string::npos, loaded.output.find("verbena0 ")) << loaded.output;
      EXPECT_NE(std::string::npos, loaded.output.find(has_sysfs ? " 0 ok" : " ok")) << loaded.output;
    }
  }
}

TEST(Modes, InstalledProgramsSeeOurDevice) {
  for (const std::string& environment : {kPreload, kDropIn, kPreload + kDropIn}) {
    const Outcome devices = run("env VERBENA_DEVICES=lo " + environment + "ibv_devices");
    EXPECT_EQ(0, devices.status);
    EXPECT_NE(std::string::npos, devices.output.find("verbena0")) << devices.output;
    const Outcome info = run("env VERBENA_DEVICES=lo " + environment + "ibv_devinfo -v");
    EXPECT_EQ(0, info.status) << info.output;
    EXPECT_NE(std::string::npos, info.output.find("PORT_ACTIVE")) << info.output;
    EXPECT_NE(std::string::npos, info.output.find("RoCE v2")) << info.output;
    // Linked with librdmacm and with providers that want the private part of the real library.
    const Outcome perftest = run("env VERBENA_DEVICES=lo " + environment + "ib_send_lat --version");
    EXPECT_NE(std::string::npos, perftest.output.find("Version: ")) << perftest.output;
    EXPECT_EQ(std::string::npos, perftest.output.find("error")) << perftest.output;
  }
}

TEST(Modes, ExportsAreWhatTheMapSays) {
  const Outcome check = run(kSource + "/tools/check-exports " + kLibraryDirectory + "/libverbena-rnic.so");
  EXPECT_EQ(0, check.status) << check.output;
}

}  // namespace
}  // namespace verbena::abi
