// `verbena devices`: every verbs device in the list, Verbena's own and others.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/descriptor_limit.h"
#include "cli/device_settings.h"
#include "cli/exit_code.h"
#include "cli/interface.h"
#include "cli/json_text.h"
#include "cli/subcommands.h"
#include "cli/text_table.h"
#include "cli/udp_port_holder.h"
#include "cli/unusable_device.h"
#include "rdma/device_kind.h"
#include "rdma/doctor_finding.h"
#include "verbena/device.h"
#include "verbena/gid_table.h"

namespace verbena::cli {
namespace {

using rdma::DeviceKind;
using rdma::kind_of;

constexpr const char* kName = "devices";

constexpr const char* kFooter =
    "Examples:\n"
    "  verbena devices\n"
    "  verbena devices --json | jq -r '.devices[] | select(.software) | .name'\n"
    "  VERBENA_DEVICES=eth0,lo verbena devices      which devices these settings give\n"
    "\n"
    "This tool carries the software RNIC within it, so that its devices stand in the list beside real ones. Other\n"
    "programs see them under: verbena run -- CMD";

// One port of a device; where the device cannot be used, its name and why.
struct DeviceRow {
  std::string name{};
  DeviceKind kind = DeviceKind::kHardware;
  std::uint64_t guid = 0;
  PortView port{};
  std::string netdev{};
  std::size_t gids = 0;
  std::uint16_t udp_port = 0;
  std::vector<HeldPort> held{};
  std::string error{};
  int system_errno = 0;  // of the error
};

// The interface of the port, as its GIDs name it; "" where none does.
std::string netdev_of(const std::vector<GidEntry>& table, std::uint8_t port) {
  for (const GidEntry& entry : table) {
    if (entry.port == port && entry.netdev != 0) return interface_name(entry.netdev);
  }
  return {};
}

DeviceRow read_port(const Context& context, DeviceRow row, const std::vector<GidEntry>& table, std::uint8_t port) {
  auto view = context.query_port(port);
  if (!view) {
    row.error = view.error().message;
    row.system_errno = view.error().system_errno;
    return row;
  }
  row.port = std::move(*view);
  row.netdev = netdev_of(table, port);
  const auto holders = UdpPortHolders::read(row.kind, row.port.link_layer);
  row.udp_port = holders.port();
  row.held = holders.of(table, port);
  row.gids = static_cast<std::size_t>(
      std::count_if(table.begin(), table.end(), [port](const GidEntry& entry) { return entry.port == port; }));
  return row;
}

void read_device(std::vector<DeviceRow>& rows, ibv_device* device) {
  DeviceRow row{.name = device->name, .kind = kind_of(*device), .guid = be64toh(ibv_get_device_guid(device))};
  const auto context = Context::open(row.name);
  auto attributes = context ? context->query_device() : Result<ibv_device_attr>(tl::make_unexpected(context.error()));
  if (!attributes) {
    row.error = why_unusable(row.kind, attributes.error());
    row.system_errno = attributes.error().system_errno;
    rows.push_back(std::move(row));
    return;
  }
  const auto table = read_gid_table(context->get());
  for (std::uint8_t port = 1; port <= attributes->phys_port_cnt && port != 0; ++port) {
    rows.push_back(read_port(*context, row, table ? *table : std::vector<GidEntry>{}, port));
  }
}

// As ibv_devices and sysfs write it.
std::string guid_text(std::uint64_t guid) {
  return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48, (guid >> 32) & 0xffff, (guid >> 16) & 0xffff,
                     guid & 0xffff);
}

nlohmann::json to_json(const DeviceRow& row) {
  nlohmann::json json{{"name", row.name},
                      {"kind", to_string(row.kind)},
                      {"software", row.kind != DeviceKind::kHardware},
                      {"node_guid", guid_text(row.guid)},
                      {"usable", row.error.empty()}};
  if (!row.error.empty()) {
    json["error"] = row.error;
    return json;
  }
  json["port"] = row.port.port;
  json["link_layer"] = row.port.link_layer == LinkLayer::kEthernet ? "ethernet" : "infiniband";
  json["state"] = row.port.state;
  json["active"] = row.port.active;
  json["mtu"] = row.port.active_mtu;
  json["lid"] = row.port.lid;
  json["netdev"] = row.netdev;
  json["gids"] = row.gids;
  json["udp_port_held"] = nlohmann::json::array();
  for (const HeldPort& held : row.held) {
    json["udp_port_held"].push_back({{"address", rdma::address_text(held.address)}, {"by", held.by}});
  }
  return json;
}

// One line for each who has ports of the device, with the addresses.
void print_held(const DeviceRow& row) {
  std::map<std::string, std::string> addresses_by_holder;
  for (const HeldPort& held : row.held) {
    std::string& addresses = addresses_by_holder[held.by];
    addresses += (addresses.empty() ? "" : ", ") + rdma::address_text(held.address);
  }
  for (const auto& [holder, addresses] : addresses_by_holder) {
    fmt::print("{}: UDP port {} of {} is held by {}. {}.\n", row.name, row.udp_port, addresses, holder, kUdpPortAdvice);
  }
}

void print_table(const std::vector<DeviceRow>& rows) {
  TextTable table({{"DEVICE"},
                   {"KIND"},
                   {"PORT", Align::kRight},
                   {"STATE"},
                   {"MTU", Align::kRight},
                   {"NETDEV"},
                   {"GIDS", Align::kRight},
                   {"NODE GUID"}});
  for (const DeviceRow& row : rows) {
    const std::string kind = to_string(row.kind);
    if (!row.error.empty()) {
      table.add_row({row.name, kind, "-", "unusable", "-", "-", "-", guid_text(row.guid)});
      continue;
    }
    table.add_row({row.name, kind, std::to_string(row.port.port), row.port.state, std::to_string(row.port.active_mtu),
                   row.netdev.empty() ? "-" : row.netdev, std::to_string(row.gids), guid_text(row.guid)});
  }
  fmt::print("{}", table.render());
  for (const DeviceRow& row : rows) {
    if (!row.error.empty()) fmt::print("{} cannot be used: {}.\n", row.name, row.error);
    print_held(row);
  }
}

int list_devices(bool as_json) {
  const auto list = read_device_list();
  if (!list) return fail(kName, list.error());
  std::vector<DeviceRow> rows;
  for (std::size_t i = 0; i < list->size(); ++i) read_device(rows, (*list)[i]);
  if (as_json) {
    auto devices = nlohmann::json::array();
    for (const DeviceRow& row : rows) devices.push_back(to_json(row));
    fmt::print("{}\n", json_text({{"devices", std::move(devices)}}));
  } else if (rows.empty()) {
    fmt::print("There is no verbs device here.\n");
  } else {
    print_table(rows);
  }
  const auto starved = std::find_if(rows.begin(), rows.end(), [](const DeviceRow& row) {
    return !row.error.empty() && is_descriptor_shortage(row.system_errno);
  });
  if (starved == rows.end()) return kExitOk;
  return fail(kName, descriptor_shortage("cannot open " + starved->name, starved->system_errno));
}

}  // namespace

void add_devices(CLI::App& tool, Request& request) {
  auto as_json = std::make_shared<bool>(false);
  auto* subcommand = tool.add_subcommand(kName, "List the verbs devices, software and real");
  subcommand->add_flag("--json", *as_json, "Print JSON");
  subcommand->footer(kFooter);
  subcommand->callback([&request, as_json] {
    request.action = [as_json] {
      const int code = apply_checked(kName, settings_for_listing());
      return code == kExitOk ? list_devices(*as_json) : code;
    };
  });
}

}  // namespace verbena::cli
