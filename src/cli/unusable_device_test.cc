#include "cli/unusable_device.h"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace verbena::cli {
namespace {

using rdma::DeviceKind;

TEST(UnusableDevice, AnotherReasonIsToldAsItIs) {
  const Error error{ErrorCode::kPermission, EACCES, "ibv_open_device of x: not allowed"};
  EXPECT_EQ(why_unusable(DeviceKind::kHardware, error), error.message);
  EXPECT_EQ(why_unusable(DeviceKind::kHardware, {ErrorCode::kBusy, EADDRINUSE, "busy"}), "busy");
  EXPECT_EQ(why_unusable(DeviceKind::kVerbena, error).find(error.message), 0U);
}

TEST(UnusableDevice, TheDeviceDoesNotWarnOfATakenPortAsWellUnlessAskedTo) {
  const char* before = std::getenv("VERBENA_LOG");
  const std::string kept = before == nullptr ? "" : before;
  ::unsetenv("VERBENA_LOG");
  const auto user = static_cast<std::uint32_t>(::geteuid());
  const std::vector<rdma::PortHolder> shared{{.address = "10.0.0.1", .uid = user}};
  const std::vector<rdma::PortHolder> of_another{{.address = "10.0.0.1", .uid = user + 1}};
  const std::vector<rdma::PortHolder> of_all{{.address = "10.0.0.1", .uid = user}, {.address = "::", .uid = user}};
  EXPECT_EQ(settings_for_listing({}).log, "");
  EXPECT_EQ(settings_for_listing(shared).log, "");
  EXPECT_EQ(settings_for_listing(of_another).log, "error");
  EXPECT_EQ(settings_for_listing(of_all).log, "error");
  ::setenv("VERBENA_LOG", "debug", 1);
  EXPECT_EQ(settings_for_listing(of_all).log, "");
  ::unsetenv("VERBENA_LOG");
  if (before != nullptr) ::setenv("VERBENA_LOG", kept.c_str(), 1);
}

}  // namespace
}  // namespace verbena::cli
