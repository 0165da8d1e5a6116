#include "cli/doctor_processes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/drop_report.h"

namespace verbena::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 500ms;
// The block of a page that counts what belongs to no device.
constexpr std::string_view kOfTheHost = "host";

// A gauge of the device's counters, and the limit that it runs into.
struct Gauge {
  std::string_view name;
  std::string_view words;
  std::string_view setting;  // in VERBENA_LIMITS
  std::uint64_t rdma::DeviceFacts::*limit;
};
constexpr std::array kGauges{
    Gauge{"address_handles", "address handles", "max_ah", &rdma::DeviceFacts::max_ah},
    Gauge{"protection_domains", "protection domains", "max_pd", &rdma::DeviceFacts::max_pd},
    Gauge{"queue_pairs", "queue pairs", "max_qp", &rdma::DeviceFacts::max_qp},
    Gauge{"completion_queues", "completion queues", "max_cq", &rdma::DeviceFacts::max_cq},
    Gauge{"memory_regions", "memory regions", "max_mr", &rdma::DeviceFacts::max_mr},
};

std::uint64_t value_of(const host::CounterBlockReading& block, std::string_view name) {
  const auto row = std::find_if(block.rows.begin(), block.rows.end(),
                                [name](const host::CounterReading& one) { return one.name == name; });
  return row == block.rows.end() ? 0 : row->value;
}

// "" where it is not set.
std::string_view variable_in(std::string_view environment, std::string_view name) {
  while (!environment.empty()) {
    const std::string_view entry = environment.substr(0, environment.find('\0'));
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return entry.substr(name.size() + 1);
    }
    environment.remove_prefix(std::min(entry.size() + 1, environment.size()));
  }
  return {};
}

// `standard` where the setting does not name it.
std::uint64_t limit_in(std::string_view limits, std::string_view setting, std::uint64_t standard) {
  while (!limits.empty()) {
    const std::string_view part = limits.substr(0, limits.find(','));
    std::uint64_t value = 0;
    if (part.size() > setting.size() && part.starts_with(setting) && part[setting.size()] == '=' &&
        std::from_chars(part.data() + setting.size() + 1, part.data() + part.size(), value).ec == std::errc()) {
      return value;
    }
    limits.remove_prefix(std::min(part.size() + 1, limits.size()));
  }
  return standard;
}

// Empty where this user may not read it.
std::string environment_of(std::uint32_t pid) {
  std::ifstream file(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Whether the holder of a UDP port runs on the software RNIC, as the survey found.
void recognise(rdma::PortHolder& holder, const CounterSurvey& survey, std::uint32_t self) {
  for (const SilentProcess& silent : survey.silent) {
    if (silent.pid == holder.pid && holder.pid != 0) holder.silence = silent.reason;
  }
  holder.verbena = holder.pid == self || std::any_of(survey.processes.begin(), survey.processes.end(),
                                                     [&](const auto& process) { return process.pid == holder.pid; });
}

void add_software_processes(rdma::HostFacts& host) {
  const auto survey = survey_counters(kPatience);
  if (!survey) return;
  const auto self = static_cast<std::uint32_t>(::getpid());
  const auto ours = std::find_if(host.devices.begin(), host.devices.end(), [](const rdma::DeviceFacts& device) {
    return device.kind == rdma::DeviceKind::kVerbena;
  });
  const rdma::DeviceFacts standard = ours == host.devices.end() ? rdma::DeviceFacts{} : *ours;
  for (const ProcessCounters& process : survey->processes) {
    if (process.pid == self) continue;
    host.software_processes.push_back(software_process(process, standard, environment_of(process.pid)));
  }
  for (const SilentProcess& silent : survey->silent) {
    host.software_processes.push_back({.pid = silent.pid, .name = "(unknown)", .silence = silent.reason});
  }
  for (auto* const holders : {&host.udp_4791, &host.udp_4797}) {
    for (rdma::PortHolder& holder : *holders) recognise(holder, *survey, self);
  }
}

void add_directories(rdma::HostFacts& host) {
  const auto survey = survey_directories(Ask::kCounts, 0, kPatience);
  if (!survey) return;
  for (const DirectoryProcess& process : survey->processes) {
    if (process.pid == static_cast<std::uint32_t>(::getpid())) continue;
    for (rdma::DirectoryFacts& directory : directories_of(process)) host.directories.push_back(std::move(directory));
  }
}

}  // namespace

rdma::SoftwareProcess software_process(const ProcessCounters& process, const rdma::DeviceFacts& standard,
                                       std::string_view environment) {
  rdma::SoftwareProcess facts{.pid = process.pid, .name = printable(process.page.process_name)};
  const std::string_view limits = variable_in(environment, "VERBENA_LIMITS");
  for (const host::CounterBlockReading& block : process.page.blocks) {
    if (block.name == kOfTheHost) continue;
    rdma::SoftwareDevice device{.name = printable(block.name)};
    for (const Gauge& gauge : kGauges) {
      device.counts.push_back({.name = std::string(gauge.words),
                               .current = value_of(block, gauge.name),
                               .limit = limit_in(limits, gauge.setting, standard.*gauge.limit)});
    }
    facts.devices.push_back(std::move(device));
  }
  return facts;
}

std::vector<rdma::DirectoryFacts> directories_of(const DirectoryProcess& process) {
  std::vector<rdma::DirectoryFacts> directories;
  for (const host::CounterBlockReading& block : process.page.blocks) {
    directories.push_back({.pid = process.pid,
                           .process = printable(process.page.process_name),
                           .name = printable(block.name),
                           .live = value_of(block, "live"),
                           .failed = value_of(block, "failed"),
                           .negative = value_of(block, "negative"),
                           .refused = value_of(block, "refused")});
  }
  return directories;
}

void add_running_processes(rdma::HostFacts& host) {
  add_software_processes(host);
  add_directories(host);
}

}  // namespace verbena::cli
