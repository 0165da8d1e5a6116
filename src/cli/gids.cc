// `verbena gids`: the addresses of the RDMA ports, and what each is good for.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/device_settings.h"
#include "cli/exit_code.h"
#include "cli/gid_remark.h"
#include "cli/interface.h"
#include "cli/json_text.h"
#include "cli/subcommands.h"
#include "cli/text_table.h"
#include "verbena/device.h"
#include "verbena/gid_resolver.h"
#include "verbena/gid_table.h"

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
};

Result<std::vector<GidRow>> read_rows(const std::string& device) {
  const auto context = Context::open(device);
  if (!context) return tl::make_unexpected(context.error());
  const auto table = read_gid_table(context->get());
  if (!table) return tl::make_unexpected(table.error());
  std::vector<GidRow> rows;
  for (const GidEntry& entry : *table) {
    const auto port = context->query_port(entry.port);
    GidSurroundings surroundings{.port_active = port && port->active, .netdev = interface_name(entry.netdev)};
    surroundings.netdev_up = interface_is_up(surroundings.netdev);
    rows.push_back({device, entry, surroundings.netdev, remark_on(entry, surroundings)});
  }
  return rows;
}

Result<std::vector<std::string>> device_names(const GidsOptions& options) {
  if (!options.device.empty()) return std::vector{options.device};
  const auto list = DeviceList::read();
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

int list_gids(const GidsOptions& options) {
  const auto names = device_names(options);
  if (!names) return fail(kName, names.error());
  std::vector<GidRow> rows;
  int code = kExitOk;
  for (const std::string& name : *names) {
    auto more = read_rows(name);
    if (!more) {
      code = fail(kName, more.error());
      continue;
    }
    rows.insert(rows.end(), std::make_move_iterator(more->begin()), std::make_move_iterator(more->end()));
  }
  if (options.json) {
    auto gids = nlohmann::json::array();
    for (const GidRow& row : rows) gids.push_back(to_json(row));
    fmt::print("{}\n", json_text({{"gids", std::move(gids)}}));
  } else if (!rows.empty()) {
    print_table(rows);
  } else if (code == kExitOk) {
    fmt::print("No device has a GID.\n");
  }
  return code;
}

Result<SourceChoice> choose(const std::string& device, const Gid& destination) {
  const auto context = Context::open(device);
  if (!context) return tl::make_unexpected(context.error());
  const auto table = read_gid_table(context->get());
  if (!table) return tl::make_unexpected(table.error());
  return choose_source(*table, {.destination = destination, .source = {}}, look_up_route);
}

// Exit code 1 where no device reaches the destination.
int explain_choice(const GidsOptions& options) {
  const auto destination = parse_gid(options.to);
  if (!destination) return fail_usage(kName, fmt::format("{} is neither an IP address nor a GID", options.to));
  const auto names = device_names(options);
  if (!names) return fail(kName, names.error());
  auto choices = nlohmann::json::array();
  bool reached = false;
  for (const std::string& name : *names) {
    const auto choice = choose(name, *destination);
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
    fmt::print("{}\n", json_text({{"destination", to_string(*destination)}, {"choices", std::move(choices)}}));
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
      if (const int code = apply_checked(kName, {}); code != kExitOk) return code;
      return options->to.empty() ? list_gids(*options) : explain_choice(*options);
    };
  });
}

}  // namespace verbena::cli
