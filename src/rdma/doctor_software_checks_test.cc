#include "rdma/doctor_software_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbena::rdma {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

HostFacts host_with(std::vector<ResourceCount> counts) {
  HostFacts host;
  host.devices = {{.name = "verbena0", .kind = DeviceKind::kVerbena, .max_ah = 1000}};
  host.software_processes = {{.pid = 17, .name = "store", .devices = {{"verbena0", std::move(counts)}}}};
  return host;
}

TEST(DoctorSoftware, TellsWhatEachProcessHasMade) {
  const HostFacts host =
      host_with({{"address handles", 12, 1000}, {"protection domains", 2, 0}, {"queue pairs", 0, 5}});
  const Finding finding = check_software_resources(host, host.devices.front());
  EXPECT_EQ(finding.severity, Severity::kGood);
  EXPECT_THAT(finding.evidence, HasSubstr("process 17 (store) has 12 of 1000 address handles, 2 protection domains"));
  EXPECT_THAT(finding.evidence, Not(HasSubstr("queue pairs")));
}

TEST(DoctorSoftware, ALimitThatIsNearIsAWarningWithTheProcess) {
  EXPECT_EQ(
      check_software_resources(host_with({{"address handles", 899, 1000}}), host_with({}).devices.front()).severity,
      Severity::kGood);
  const Finding finding =
      check_software_resources(host_with({{"address handles", 900, 1000}}), host_with({}).devices.front());
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_THAT(finding.cause, HasSubstr("address handles of process 17 (store)"));
  EXPECT_FALSE(finding.remedy.empty());
}

TEST(DoctorSoftware, EachDeviceIsToldOnceAlsoOneThatIsNotHere) {
  HostFacts host = host_with({{"address handles", 1, 1000}});
  host.devices.push_back({.name = "verbena1", .kind = DeviceKind::kVerbena});
  host.software_processes.front().devices.push_back({"verbena1", {{"address handles", 2, 0}}});
  host.software_processes.front().devices.push_back({"verbena2", {{"address handles", 3, 0}}});
  const std::string first = check_software_resources(host, host.devices[0]).evidence;
  const std::string second = check_software_resources(host, host.devices[1]).evidence;
  EXPECT_THAT(first, HasSubstr("1 of 1000 address handles on its verbena0"));
  EXPECT_THAT(first, HasSubstr("3 address handles on its verbena2"));
  EXPECT_THAT(first, Not(HasSubstr("verbena1")));
  EXPECT_THAT(second, HasSubstr("2 address handles on its verbena1"));
  EXPECT_THAT(second, Not(HasSubstr("verbena2")));
}

TEST(DoctorSoftware, AProcessThatGaveNoCountersIsNamed) {
  HostFacts host = host_with({});
  host.software_processes = {{.pid = 5, .name = "(unknown)", .silence = "it did not answer"}};
  EXPECT_THAT(check_software_resources(host, host.devices.front()).evidence, HasSubstr("it did not answer"));
}

TEST(DoctorSoftware, ADirectoryThatWasRefusedIsAWarningAndFailuresNowAreANote) {
  HostFacts host;
  host.directories = {{.pid = 1, .process = "a", .name = "verbena0/1", .live = 7},
                      {.pid = 2, .process = "b", .name = "verbena0/1", .failed = 3, .negative = 1},
                      {.pid = 3, .process = "c", .name = "mlx5_0/1", .live = 64, .failed = 2, .refused = 9}};
  const std::vector<Finding> findings = check_directories(host);
  ASSERT_EQ(findings.size(), 3U);
  EXPECT_EQ(findings[0].severity, Severity::kGood);
  EXPECT_EQ(findings[1].severity, Severity::kNote);
  EXPECT_THAT(findings[1].evidence, HasSubstr("3 attempts failed"));
  EXPECT_EQ(findings[2].severity, Severity::kWarning);
  EXPECT_THAT(findings[2].subject, HasSubstr("process 3 (c)"));
  EXPECT_THAT(findings[2].evidence, HasSubstr("9 answers refused"));
  EXPECT_FALSE(findings[2].remedy.empty());
}

}  // namespace
}  // namespace verbena::rdma
