#include "cli/doctor_processes.h"

#include <string>

#include <gtest/gtest.h>

namespace verbena::cli {
namespace {

using namespace std::string_literals;

ProcessCounters process_with(std::uint64_t handles, std::uint64_t domains) {
  ProcessCounters process;
  process.pid = 42;
  process.page.process_name = "store";
  process.page.blocks = {{"host", {{"no_such_queue_pair", "packets", Side::kReceiver, 3}}},  // of no device
                         {"verbena0",
                          {{"address_handles", "objects", Side::kBoth, handles},
                           {"protection_domains", "objects", Side::kBoth, domains}}}};
  return process;
}

const rdma::ResourceCount& count_of(const rdma::SoftwareProcess& process, const std::string& name) {
  for (const rdma::ResourceCount& count : process.devices.at(0).counts) {
    if (count.name == name) return count;
  }
  static const rdma::ResourceCount none;
  return none;
}

TEST(DoctorProcesses, ObjectsAreReadFromTheGauges) {
  const auto facts = software_process(process_with(7, 2), {.max_ah = 1000, .max_pd = 50}, "");
  EXPECT_EQ(facts.pid, 42U);
  ASSERT_EQ(facts.devices.size(), 1U);
  EXPECT_EQ(facts.devices.at(0).name, "verbena0");
  EXPECT_EQ(count_of(facts, "address handles").current, 7U);
  EXPECT_EQ(count_of(facts, "address handles").limit, 1000U);
  EXPECT_EQ(count_of(facts, "protection domains").current, 2U);
  EXPECT_EQ(count_of(facts, "protection domains").limit, 50U);
}

TEST(DoctorProcesses, ALimitThatTheProcessWasGivenCounts) {
  const std::string environment = "HOME=/root\0XVERBENA_LIMITS=max_ah=1\0VERBENA_LIMITS=max_qp=9,max_ah=64\0A=\0"s;
  const auto facts = software_process(process_with(60, 1), {.max_ah = 1000, .max_pd = 50}, environment);
  EXPECT_EQ(count_of(facts, "address handles").limit, 64U);
  EXPECT_EQ(count_of(facts, "queue pairs").limit, 9U);
  EXPECT_EQ(count_of(facts, "protection domains").limit, 50U);
  const auto odd = software_process(process_with(60, 1), {.max_ah = 1000}, "VERBENA_LIMITS=max_ah=,max_ah"s);
  EXPECT_EQ(count_of(odd, "address handles").limit, 1000U);
}

TEST(DoctorProcesses, DirectoriesTellLiveFailedAndRefused) {
  DirectoryProcess process;
  process.pid = 3;
  process.page.process_name = "store";
  process.page.blocks = {{"verbena0/1",
                          {{"live", "address handles", Side::kBoth, 5},
                           {"failed", "events", Side::kBoth, 4},
                           {"negative", "destinations", Side::kBoth, 3},
                           {"refused", "events", Side::kBoth, 2}}}};
  const auto directories = directories_of(process);
  ASSERT_EQ(directories.size(), 1U);
  EXPECT_EQ(directories[0].live, 5U);
  EXPECT_EQ(directories[0].failed, 4U);
  EXPECT_EQ(directories[0].negative, 3U);
  EXPECT_EQ(directories[0].refused, 2U);
}

}  // namespace
}  // namespace verbena::cli
