#include "cli/device_settings.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <CLI/CLI.hpp>

#include "cli/exit_code.h"

namespace verbena::cli {

void add_device_settings(CLI::App& subcommand, DeviceSettings& settings) {
  subcommand
      .add_option("--devices", settings.devices,
                  "Interfaces to make devices of, in this order (VERBENA_DEVICES). "
                  "eth0+eth1 is one device with two ports; IFACE/link_layer=infiniband/lid=4 is an InfiniBand port")
      ->type_name("IFACE[/KEY=VALUE...][+IFACE...][,...]")
      ->group(kDeviceSettings);
  subcommand
      .add_option("--lids", settings.lids, "LIDs of InfiniBand ports on other hosts, as in 8@10.0.0.2 (VERBENA_LIDS)")
      ->type_name("LID@ADDRESS[,...]")
      ->group(kDeviceSettings);
  subcommand
      .add_option("--subnet", settings.subnet,
                  "What a subnet manager would tell InfiniBand ports; watched for changes (VERBENA_SUBNET)")
      ->type_name("FILE")
      ->group(kDeviceSettings);
  subcommand
      .add_option("--impair", settings.impair,
                  "Lose, duplicate, delay, reorder, corrupt or mark on purpose, by a seed (VERBENA_IMPAIR)")
      ->type_name("SPEC")
      ->group(kDeviceSettings);
  subcommand.add_option("--limits", settings.limits, "Lower limits, as in max_ah=64 (VERBENA_LIMITS)")
      ->type_name("SPEC")
      ->group(kDeviceSettings);
  subcommand
      .add_option("--inject", settings.inject,
                  "Calls that are slow or fail, as in create_ah.delay=1s,create_ah.fail=ENOMEM (VERBENA_INJECT)")
      ->type_name("SPEC")
      ->group(kDeviceSettings);
  subcommand
      .add_flag("--strict", settings.strict,
                "Look for misuse that a device need not see, such as an address handle destroyed too early "
                "(VERBENA_STRICT=on)")
      ->group(kDeviceSettings);
  subcommand.add_option("--pcap", settings.pcap, "Write each datagram to this file, for Wireshark (VERBENA_PCAP)")
      ->type_name("FILE")
      ->group(kDeviceSettings);
  subcommand.add_flag("--no-shm", settings.no_shm, "Use UDP between the processes of this host too (VERBENA_SHM=off)")
      ->group(kDeviceSettings);
  subcommand.add_flag("--no-udp", settings.no_udp, "Do not open UDP port 4791: stay on this host (VERBENA_UDP=off)")
      ->group(kDeviceSettings);
  subcommand
      .add_flag("--no-congestion", settings.no_congestion,
                "Connections neither send ECN-capable packets nor slow down at marks (VERBENA_CONGESTION=off)")
      ->group(kDeviceSettings);
  subcommand
      .add_flag("--no-selective-repeat", settings.no_selective_repeat,
                "Connections go back to what was lost, whoever is at the other end (VERBENA_SELECTIVE_REPEAT=off)")
      ->group(kDeviceSettings);
  subcommand.add_option("--log", settings.log, "How much the device tells on stderr (VERBENA_LOG)")
      ->check(CLI::IsMember({"off", "error", "warn", "info", "debug"}))
      ->type_name("LEVEL")
      ->group(kDeviceSettings);
}

Variables to_variables(const DeviceSettings& settings, const std::string& directory) {
  Variables variables;
  if (!settings.devices.empty()) variables.emplace_back("VERBENA_DEVICES", settings.devices);
  if (!settings.lids.empty()) variables.emplace_back("VERBENA_LIDS", settings.lids);
  if (!settings.subnet.empty()) {
    variables.emplace_back("VERBENA_SUBNET", (std::filesystem::path(directory) / settings.subnet).string());
  }
  if (!settings.impair.empty()) variables.emplace_back("VERBENA_IMPAIR", settings.impair);
  if (!settings.limits.empty()) variables.emplace_back("VERBENA_LIMITS", settings.limits);
  if (!settings.inject.empty()) variables.emplace_back("VERBENA_INJECT", settings.inject);
  if (settings.strict) variables.emplace_back("VERBENA_STRICT", "on");
  if (!settings.pcap.empty()) {
    variables.emplace_back("VERBENA_PCAP", (std::filesystem::path(directory) / settings.pcap).string());
  }
  if (settings.no_shm) variables.emplace_back("VERBENA_SHM", "off");
  if (settings.no_congestion) variables.emplace_back("VERBENA_CONGESTION", "off");
  if (settings.no_selective_repeat) variables.emplace_back("VERBENA_SELECTIVE_REPEAT", "off");
  if (settings.no_udp) variables.emplace_back("VERBENA_UDP", "off");
  if (!settings.log.empty()) variables.emplace_back("VERBENA_LOG", settings.log);
  return variables;
}

void apply(const Variables& variables) {
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
}

void apply(const DeviceSettings& settings) {
  apply(to_variables(settings, std::filesystem::current_path().string()));
}

int apply_checked(std::string_view subcommand, const DeviceSettings& settings) {
  const Variables variables = to_variables(settings, std::filesystem::current_path().string());
  apply(variables);
  const auto refused = find_refused_setting();
  if (!refused) return kExitOk;
  const bool ours = std::any_of(variables.begin(), variables.end(),
                                [&](const auto& variable) { return variable.first == refused->variable; });
  return ours ? fail_usage(subcommand, refused->message) : fail(subcommand, refused->message);
}

}  // namespace verbena::cli
