#include "cli/unusable_device.h"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

using rdma::DeviceKind;

TEST(UnusableDevice, APortThatIsTakenIsNamedWithWhatToDo) {
  const std::string reason =
      why_unusable(DeviceKind::kVerbena, {ErrorCode::kBusy, EADDRINUSE, "ibv_open_device of verbena0"});
  EXPECT_NE(reason.find("UDP port 4791"), std::string::npos) << reason;
  EXPECT_NE(reason.find("rdma link"), std::string::npos) << reason;
  EXPECT_NE(reason.find("VERBENA_UDP=off"), std::string::npos) << reason;
}

TEST(UnusableDevice, AnotherReasonIsToldAsItIs) {
  const Error error{ErrorCode::kPermission, EACCES, "ibv_open_device of x: not allowed"};
  EXPECT_EQ(why_unusable(DeviceKind::kHardware, error), error.message);
  EXPECT_EQ(why_unusable(DeviceKind::kHardware, {ErrorCode::kBusy, EADDRINUSE, "busy"}), "busy");
  EXPECT_EQ(why_unusable(DeviceKind::kVerbena, error).find(error.message), 0U);
}

TEST(UnusableDevice, TheLogOfTheDeviceIsOffWhereAllAddressesAreTakenUnlessAskedFor) {
  const char* before = std::getenv("VERBENA_LOG");
  const std::string kept = before == nullptr ? "" : before;
  ::unsetenv("VERBENA_LOG");
  const std::vector<rdma::PortHolder> of_one{{.address = "10.0.0.1"}};
  const std::vector<rdma::PortHolder> of_all{{.address = "10.0.0.1"}, {.address = "::"}};
  EXPECT_EQ(settings_for_listing({}).log, "");
  EXPECT_EQ(settings_for_listing(of_one).log, "");
  EXPECT_EQ(settings_for_listing(of_all).log, "off");
  ::setenv("VERBENA_LOG", "debug", 1);
  EXPECT_EQ(settings_for_listing(of_all).log, "");
  ::unsetenv("VERBENA_LOG");
  if (before != nullptr) ::setenv("VERBENA_LOG", kept.c_str(), 1);
}

}  // namespace
}  // namespace verbena::cli
