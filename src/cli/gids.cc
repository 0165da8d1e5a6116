// `verbena gids`: the addresses of the RDMA ports, and what each is good for.
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/descriptor_limit.h"
#include "cli/device_settings.h"
#include "cli/exit_code.h"
#include "cli/gid_remark.h"
#include "cli/interface.h"
#include "cli/json_text.h"
#include "cli/port_name.h"
#include "cli/subcommands.h"
#include "cli/text_table.h"
#include "cli/udp_port_holder.h"
#include "cli/unusable_device.h"
#include "rdma/device_kind.h"
#include "verbena/destination.h"
#include "verbena/device.h"
#include "verbena/gid_resolver.h"
#include "verbena/gid_table.h"
#include "verbena/resolve.h"

namespace verbena::cli {
namespace {

constexpr const char* kName = "gids";

constexpr const char* kFooter =
    "Examples:\n"
    "  verbena gids                            every GID of every device\n"
    "  verbena gids --device verbena0 --json\n"
    "  verbena gids --to 10.0.0.7              which one a datagram to 10.0.0.7 would leave from, and why\n"
    "\n"
    "The index is what ib_send_lat -x and ibv_ud_pingpong -g want. It is not stable: the middleware never asks for "
    "one.";

struct GidsOptions {
  std::string device;  // empty: all
  std::string to;      // empty: list
  bool json = false;
};

struct GidRow {
  std::string device;
  GidEntry entry;
  std::string netdev;
  GidRemark remark;
  std::string udp_port_held_by;  // empty: by nobody who is in the way
};

// A device that is asked and cannot be used, and why.
struct UnusableDevice {
  std::string device;
  std::string reason;
  int system_errno = 0;
};

rdma::DeviceKind kind_of_name(const std::string& device) {
  const auto list = DeviceList::read();
  for (std::size_t i = 0; list && i < list->size(); ++i) {
    if (device == (*list)[i]->name) return rdma::kind_of(*(*list)[i]);
  }
  return rdma::DeviceKind::kHardware;
}

// As Context::open(), with a reason that says what to do.
Result<Context> open_device(const std::string& device) {
  auto context = Context::open(device);
  if (context) return context;
  Error error = context.error();
  error.message = why_unusable(kind_of_name(device), error);
  return tl::make_unexpected(std::move(error));
}

struct DeviceGids {
  std::vector<GidRow> rows;
  std::vector<std::string> ports_without;  // "verbena0", and "verbena0/2" of a device of several ports
};

std::vector<std::string> ports_without_gid(const Context& context, const std::vector<GidEntry>& table) {
  std::vector<std::string> names;
  const auto device = context.query_device();
  const unsigned ports = device ? device->phys_port_cnt : 1U;
  for (unsigned port = 1; port <= ports; ++port) {
    const bool has = std::any_of(table.begin(), table.end(), [&](const GidEntry& entry) { return entry.port == port; });
    const auto shown = ports == 1 ? std::uint8_t{0} : static_cast<std::uint8_t>(port);
    if (!has) names.push_back(to_text(PortName{context.name(), shown}));
  }
  return names;
}

Result<DeviceGids> read_gids(const std::string& device) {
  const auto context = open_device(device);
  if (!context) return tl::make_unexpected(context.error());
  const auto table = read_gid_table(context->get());
  if (!table) return tl::make_unexpected(table.error());
  const rdma::DeviceKind kind = kind_of_name(device);
  std::map<LinkLayer, UdpPortHolders> holders_by_link;
  DeviceGids gids{.rows = {}, .ports_without = ports_without_gid(*context, *table)};
  for (const GidEntry& entry : *table) {
    const auto port = context->query_port(entry.port);
    const LinkLayer link_layer = port ? port->link_layer : LinkLayer::kEthernet;
    auto holders = holders_by_link.find(link_layer);
    if (holders == holders_by_link.end()) {
      holders = holders_by_link.emplace(link_layer, UdpPortHolders::read(kind, link_layer)).first;
    }
    GidSurroundings surroundings{.port_active = port && port->active,
                                 .netdev = interface_name(entry.netdev),
                                 .udp_port = holders->second.port(),
                                 .udp_port_held_by = holders->second.of(entry.gid)};
    surroundings.netdev_up = interface_is_up(surroundings.netdev);
    gids.rows.push_back(
        {device, entry, surroundings.netdev, remark_on(entry, surroundings), surroundings.udp_port_held_by});
  }
  return gids;
}

Result<std::vector<std::string>> device_names(const GidsOptions& options) {
  if (!options.device.empty()) return std::vector{options.device};
  const auto list = read_device_list();
  if (!list) return tl::make_unexpected(list.error());
  return list->names();
}

nlohmann::json to_json(const GidRow& row) {
  return {{"device", row.device},
          {"port", row.entry.port},
          {"index", row.entry.index},
          {"type", to_string(row.entry.type)},
          {"gid", to_string(row.entry.gid)},
          {"netdev", row.netdev},
          {"scope", scope_of(row.entry.gid)},
          {"usable", row.remark.usable},
          {"udp_port_held_by", row.udp_port_held_by},
          {"remark", row.remark.text}};
}

void print_table(const std::vector<GidRow>& rows) {
  TextTable table({{"DEVICE"},
                   {"PORT", Align::kRight},
                   {"INDEX", Align::kRight},
                   {"TYPE"},
                   {"GID"},
                   {"NETDEV"},
                   {"SCOPE"},
                   {"USABLE"}});
  for (const GidRow& row : rows) {
    table.add_row({row.device, std::to_string(row.entry.port), std::to_string(row.entry.index),
                   to_string(row.entry.type), to_string(row.entry.gid), row.netdev.empty() ? "-" : row.netdev,
                   std::string(scope_of(row.entry.gid)), row.remark.text});
  }
  fmt::print("{}", table.render());
}

void print_json(const std::vector<GidRow>& rows, const std::vector<UnusableDevice>& unusable) {
  auto gids = nlohmann::json::array();
  for (const GidRow& row : rows) gids.push_back(to_json(row));
  auto devices = nlohmann::json::array();
  for (const UnusableDevice& device : unusable) {
    devices.push_back({{"device", device.device}, {"error", device.reason}});
  }
  fmt::print("{}\n", json_text({{"gids", std::move(gids)}, {"unusable", std::move(devices)}}));
}

// What cannot be used is told, and no failure; but for want of descriptors nothing is known of it.
int code_of(const std::vector<UnusableDevice>& unusable) {
  for (const UnusableDevice& device : unusable) {
    if (!is_descriptor_shortage(device.system_errno)) continue;
    return fail(kName, descriptor_shortage("cannot open " + device.device, device.system_errno));
  }
  return kExitOk;
}

// A device that cannot be used leaves the others listed; it is a failure where it was asked for by name.
int list_gids(const GidsOptions& options) {
  const auto names = device_names(options);
  if (!names) return fail(kName, names.error());
  std::vector<GidRow> rows;
  std::vector<std::string> without;
  std::vector<UnusableDevice> unusable;
  for (const std::string& name : *names) {
    auto more = read_gids(name);
    if (!more && !options.device.empty()) return fail(kName, more.error());
    if (more) {
      std::move(more->rows.begin(), more->rows.end(), std::back_inserter(rows));
      std::move(more->ports_without.begin(), more->ports_without.end(), std::back_inserter(without));
    } else {
      unusable.push_back({name, more.error().message, more.error().system_errno});
    }
  }
  if (options.json) {
    print_json(rows, unusable);
    return code_of(unusable);
  }
  if (!rows.empty()) print_table(rows);
  if (!without.empty() || (rows.empty() && unusable.empty())) fmt::print("{}\n", no_gid_in_words(without));
  for (const UnusableDevice& device : unusable) fmt::print("{} cannot be used: {}.\n", device.device, device.reason);
  return code_of(unusable);
}

// An address alone, a link-local one with its interface as in fe80::1%eth0.
Result<Destination> parse_wanted(const std::string& text) {
  const std::size_t extra = text.find_first_of(",=");
  if (extra != std::string::npos) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("{}: give an address alone; nothing else counts for the choice of a GID", text));
  }
  auto destination = parse_destination(text);
  if (destination && destination->netdev != 0 && !destination->gid.is_link_local()) {
    return failure(ErrorCode::kInvalidArgument, fmt::format("{}: only a link-local address has an interface", text));
  }
  return destination;
}

Result<SourceChoice> choose(const std::string& device, const Destination& wanted) {
  const auto context = open_device(device);
  if (!context) return tl::make_unexpected(context.error());
  const auto table = read_gid_table(context->get());
  if (!table) return tl::make_unexpected(table.error());
  return choose_source(*table, {.destination = wanted.gid, .netdev = wanted.netdev, .source = {}}, look_up_route);
}

// Exit code 1 where no device reaches the destination.
int explain_choice(const GidsOptions& options) {
  const auto wanted = parse_wanted(options.to);
  if (!wanted) return fail_usage(kName, wanted.error().message);
  const auto names = device_names(options);
  if (!names) return fail(kName, names.error());
  auto choices = nlohmann::json::array();
  bool reached = false;
  for (const std::string& name : *names) {
    const auto choice = choose(name, *wanted);
    reached = reached || choice.has_value();
    if (!options.json) {
      fmt::print("{}: {}\n", name, choice ? choice->explanation : choice.error().message);
    } else if (choice) {
      choices.push_back({{"device", name},
                         {"source", to_string(choice->entry.gid)},
                         {"index", choice->entry.index},
                         {"explanation", choice->explanation}});
    } else {
      choices.push_back({{"device", name}, {"error", choice.error().message}});
    }
  }
  if (options.json) {
    fmt::print("{}\n", json_text({{"destination", to_string(wanted->gid)}, {"choices", std::move(choices)}}));
  }
  return reached ? kExitOk : kExitFailed;
}

}  // namespace

void add_gids(CLI::App& tool, Request& request) {
  auto options = std::make_shared<GidsOptions>();
  auto* subcommand = tool.add_subcommand(kName, "List the GIDs of each port, and what each is good for");
  subcommand->add_option("--device", options->device, "Only this device")->type_name("NAME");
  subcommand->add_option("--to", options->to, "Say which GID would be chosen for this destination, and why")
      ->type_name("ADDRESS");
  subcommand->add_flag("--json", options->json, "Print JSON");
  subcommand->footer(kFooter);
  subcommand->callback([&request, options] {
    request.action = [options] {
      if (const int code = apply_checked(kName, settings_for_listing()); code != kExitOk) return code;
      return options->to.empty() ? list_gids(*options) : explain_choice(*options);
    };
  });
}

}  // namespace verbena::cli
