// What the user may say about the software devices on the command line, and the environment variables that carry it:
// the device in the process reads those, whoever set them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): its own name
class App;
}

namespace verbena::cli {

struct DeviceSettings {
  std::string devices;  // empty: as the device chooses
  std::string lids;     // empty: every LID is on this host
  std::string subnet;   // empty: no file
  std::string impair;   // empty: no impairment
  std::string limits;   // empty: those of the device
  std::string inject;   // empty: no faults
  std::string pcap;     // empty: no capture
  std::string log;      // empty: the device's default
  bool no_shm = false;
  bool no_udp = false;
  bool no_congestion = false;
  bool no_selective_repeat = false;
  bool strict = false;
};

// The group of these options in the help.
inline constexpr const char* kDeviceSettings = "Software devices";

// Adds an option for each setting of the device. Requires: `settings` outlives `subcommand`.
void add_device_settings(CLI::App& subcommand, DeviceSettings& settings);

// Name and value, in the order in which they are to be set.
using Variables = std::vector<std::pair<std::string, std::string>>;

// The variables that say the same. A relative capture file is taken from `directory`, for a command may change its own.
Variables to_variables(const DeviceSettings& settings, const std::string& directory);

// Sets them for this process and those it starts. Call before the first verbs call and the first thread.
void apply(const Variables& variables);

// As above, for `settings` and the current directory.
void apply(const DeviceSettings& settings);

// A setting that the software RNIC would refuse, so that it offers no device or opens none: it says so itself, and yet
// a tool that goes on finds "no device". Whether it stood on the command line or in the environment decides who is
// told.
struct RefusedSetting {
  std::string variable;  // "VERBENA_IMPAIR"
  std::string message;   // one sentence, with the variable's name
};

// Reads the environment as the device will, and looks whether the interfaces are there and the capture can be written.
// Nothing where all can be had.
std::optional<RefusedSetting> find_refused_setting();

// Applies `settings` and looks for one that is refused. Returns kExitOk, or what the tool is to exit with, having said
// why on stderr: kExitUsage where it stood on the command line, kExitFailed where the environment holds it.
int apply_checked(std::string_view subcommand, const DeviceSettings& settings);

}  // namespace verbena::cli
