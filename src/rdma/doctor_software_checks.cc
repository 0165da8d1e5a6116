#include "rdma/doctor_software_checks.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "rdma/doctor_finding.h"

namespace verbena::rdma {
namespace {

// From nine tenths of a limit on it is near.
bool is_near(const ResourceCount& count) noexcept {
  return count.limit != 0 && count.current * 10 >= count.limit * 9;
}

void append(std::string& list, const std::string& word) {
  list += (list.empty() ? "" : ", ") + word;
}

std::string process_name(const SoftwareProcess& process) {
  return fmt::format("process {} ({})", process.pid, process.name);
}

std::string counts_in_words(const SoftwareDevice& device) {
  std::string words;
  for (const ResourceCount& count : device.counts) {
    if (count.current == 0 && !is_near(count)) continue;
    append(words, count.limit == 0 ? fmt::format("{} {}", count.current, count.name)
                                   : fmt::format("{} of {} {}", count.current, count.limit, count.name));
  }
  return words.empty() ? "nothing" : words;
}

// A device that this process has not, because the other one was told of other interfaces, is told with the first.
bool belongs_to(const HostFacts& host, const DeviceFacts& device, const std::string& name) {
  if (name == device.name) return true;
  if (find_device(host, name) != nullptr) return false;
  const auto first = std::find_if(host.devices.begin(), host.devices.end(),
                                  [](const DeviceFacts& one) { return one.kind == DeviceKind::kVerbena; });
  return first != host.devices.end() && first->name == device.name;
}

}  // namespace

Finding check_software_resources(const HostFacts& host, const DeviceFacts& device) {
  std::string seen =
      "on the software RNIC: " + counted(host.software_processes.size(), "other process", "other processes");
  std::string near;
  for (const SoftwareProcess& process : host.software_processes) {
    if (!process.silence.empty()) seen += fmt::format("; {}: {}", process_name(process), process.silence);
    for (const SoftwareDevice& one : process.devices) {
      if (!belongs_to(host, device, one.name)) continue;
      seen += fmt::format("; {} has {} on its {}", process_name(process), counts_in_words(one), one.name);
      for (const ResourceCount& count : one.counts) {
        if (is_near(count)) append(near, fmt::format("{} of {}", count.name, process_name(process)));
      }
    }
  }
  if (near.empty()) {
    return good("resources", device.name,
                seen + ". Each process has its own device, so one cannot use up another's limits");
  }
  return finding(Severity::kWarning, "resources", device.name, seen,
                 {fmt::format("nearly used up: {}; the next creation may fail with ENOMEM", near),
                  "let that process give back what it no longer uses, or share it (an address-handle directory does); "
                  "verbena drops and verbena ah top show its counts as they change; the limit is the device's, or "
                  "lowered by VERBENA_LIMITS"});
}

std::vector<Finding> check_directories(const HostFacts& host) {
  std::vector<Finding> findings;
  for (const DirectoryFacts& directory : host.directories) {
    std::string subject = fmt::format("{} of process {} ({})", directory.name, directory.pid, directory.process);
    std::string seen = fmt::format(
        "{}; {} failed, {} remembered as such now; {} refused because a limit was reached",
        counted(directory.live, "address handle", "address handles"), counted(directory.failed, "attempt", "attempts"),
        counted(directory.negative, "destination", "destinations"), counted(directory.refused, "answer", "answers"));
    if (directory.refused != 0) {
      findings.push_back(finding(
          Severity::kWarning, "directories", std::move(subject), std::move(seen),
          {"the device, the directory (max_entries) or the tenant's budget was full of what is held or in flight",
           "raise that limit, drop handles that are not needed, and take completions; verbena ah dump shows the "
           "holders"}));
    } else if (directory.negative != 0) {
      findings.push_back(finding(Severity::kNote, "directories", std::move(subject), std::move(seen),
                                 {"peers that it asked for cannot be reached at the moment",
                                  "verbena ah dump shows which, and why; verbena doctor PEER looks at the way there"}));
    } else {
      findings.push_back(good("directories", std::move(subject), std::move(seen)));
    }
  }
  return findings;
}

}  // namespace verbena::rdma
