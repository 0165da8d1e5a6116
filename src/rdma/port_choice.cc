#include "verbena/port_choice.h"

#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "rdma/first_route.h"
#include "verbena/gid_table.h"
#include "verbena/resolve.h"

namespace verbena {

namespace {

// A port that leads there: all of a PortChoice but the device.
struct Way {
  std::uint8_t port = 0;
  SourceChoice source;
  std::string explanation;
};

Status fits_link_layer(const PortView& view, const Destination& destination) {
  if (!view.active) return failure(ErrorCode::kUnavailable, "it is " + view.state);
  if (view.link_layer == LinkLayer::kEthernet && destination.lid != 0) {
    return failure(ErrorCode::kUnreachable, "it is Ethernet (RoCE), and the destination is a LID");
  }
  if (view.link_layer == LinkLayer::kInfiniBand && destination.lid == 0) {
    return failure(ErrorCode::kUnreachable, "it is InfiniBand, which addresses by LID, and the destination has none");
  }
  if (view.link_layer == LinkLayer::kInfiniBand && destination.netdev != 0) {
    return failure(ErrorCode::kUnreachable, "it is InfiniBand, and the destination names a network interface");
  }
  if (view.link_layer == LinkLayer::kEthernet && destination.source_path_bits != 0) {
    return failure(ErrorCode::kUnreachable, "it is Ethernet (RoCE), and the destination has path bits");
  }
  if (view.grh_required && destination.gid.is_zero()) {
    return failure(ErrorCode::kUnreachable, "it demands a GRH, and the destination has no GID");
  }
  return {};
}

Result<Way> try_port(const Context& context, std::uint8_t port, const Destination& destination,
                     const RouteLookup& routes) {
  const Result<PortView> view = context.query_port(port);
  if (!view) return tl::make_unexpected(view.error());
  if (Status fits = fits_link_layer(*view, destination); !fits) return tl::make_unexpected(fits.error());
  Way choice{.port = port, .source = {}, .explanation = {}};
  if (destination.gid.is_zero()) {
    choice.explanation = fmt::format("{} port {}: InfiniBand, to LID {}", context.name(), port, destination.lid);
    return choice;
  }
  const Result<std::vector<GidEntry>> table = read_gid_table(context.get());
  if (!table) return tl::make_unexpected(table.error());
  Result<SourceChoice> source = choose_source(
      *table,
      {.destination = destination.gid, .port = port, .netdev = destination.netdev, .source = destination.source},
      routes);
  if (!source) return tl::make_unexpected(source.error());
  choice.source = std::move(*source);
  choice.explanation = fmt::format("{} port {}: {}", context.name(), port, choice.source.explanation);
  return choice;
}

PortChoice by_way(Context context, Way way) {
  return {.context = std::move(context),
          .port = way.port,
          .source = std::move(way.source),
          .explanation = std::move(way.explanation)};
}

}  // namespace

Result<PortChoice> choose_port(const Destination& destination, const RouteLookup& routes) {
  const Result<DeviceList> list = DeviceList::read();
  if (!list) return tl::make_unexpected(list.error());
  const std::optional<Route> route =
      destination.lid == 0 ? rdma::first_route(destination.gid, destination.netdev, routes) : std::nullopt;
  std::optional<std::pair<std::string, Way>> second_best;  // with the name of its device
  std::string reasons;
  for (const std::string& name : list->names()) {
    Result<Context> context = Context::open(name);
    const Result<ibv_device_attr> device =
        context ? context->query_device() : Result<ibv_device_attr>(tl::make_unexpected(context.error()));
    if (!device) {
      reasons += fmt::format("; {}: {}", name, device.error().message);
      continue;
    }
    for (unsigned number = 1; number <= device->phys_port_cnt; ++number) {  // up to 255: wider than a port
      const auto port = static_cast<std::uint8_t>(number);
      if (destination.port != 0 && destination.port != port) continue;
      Result<Way> choice = try_port(*context, port, destination, routes);
      if (choice && rdma::is_on_route(choice->source, route)) return by_way(std::move(*context), std::move(*choice));
      if (choice && !second_best) second_best.emplace(name, std::move(*choice));
      if (!choice) reasons += fmt::format("; {} port {}: {}", name, port, choice.error().message);
    }
  }
  if (second_best) {
    Result<Context> context = Context::open(second_best->first);
    if (!context) return tl::make_unexpected(context.error());
    return by_way(std::move(*context), std::move(second_best->second));
  }
  if (list->empty()) {
    return failure(ErrorCode::kNotFound,
                   "no RDMA device; load a driver (modprobe rdma_rxe), or use Verbena's own device (verbena run)");
  }
  return failure(ErrorCode::kUnreachable, fmt::format("no port leads to {}{}", to_text(destination), reasons));
}

}  // namespace verbena
