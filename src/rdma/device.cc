#include "verbena/device.h"

#include <cerrno>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "rdma/verbs_error.h"
#include "verbena/gid_table.h"
#include "verbena/rate.h"

namespace verbena {

namespace {

int free_list(ibv_device** list) {
  ibv_free_device_list(list);
  return 0;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// Wider than a port number: a device may have 255.
unsigned port_count(ibv_context* context) {
  ibv_device_attr attributes{};
  return ibv_query_device(context, &attributes) == 0 ? attributes.phys_port_cnt : 1U;
}

bool is_usable(ibv_context* context, const PortView& view) {
  if (!view.active) return false;
  if (view.link_layer == LinkLayer::kInfiniBand) return view.lid != 0;
  const Result<std::vector<GidEntry>> table = read_gid_table(context);
  if (!table) return false;
  for (const GidEntry& entry : *table) {
    if (entry.port == view.port) return true;
  }
  return false;
}

tl::unexpected<Error> is_not_open() {
  return failure(ErrorCode::kInvalidArgument, "the device is not open: the context is empty or was closed");
}

}  // namespace

Result<DeviceList> DeviceList::read() {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr) {
    return rdma::verbs_failure("ibv_get_device_list", "", errno != 0 ? errno : ENOSYS,
                               "libibverbs finds no kernel support; load it (modprobe ib_uverbs), or use Verbena's own "
                               "device (verbena run)");
  }
  return DeviceList(std::make_shared<VerbsObject<ibv_device*>>(list, free_list, "ibv_free_device_list", "device list",
                                                               std::vector<Keeper>{}),
                    static_cast<std::size_t>(count));
}

std::vector<std::string> DeviceList::names() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < size(); ++i) names.emplace_back(ibv_get_device_name((*this)[i]));
  return names;
}

Result<Context> Context::open(std::string_view name) {
  Result<DeviceList> list = DeviceList::read();
  if (!list) return tl::make_unexpected(list.error());
  for (std::size_t i = 0; i < list->size(); ++i) {
    if (name != ibv_get_device_name((*list)[i])) continue;
    ibv_context* context = ibv_open_device((*list)[i]);
    if (context == nullptr) return rdma::verbs_failure("ibv_open_device", fmt::format("of {}", name), errno);
    return Context(std::make_shared<VerbsObject<ibv_context>>(context, ibv_close_device, "ibv_close_device",
                                                              fmt::format("device {}", name), std::vector<Keeper>{}));
  }
  return failure(ErrorCode::kNotFound, fmt::format("no RDMA device is named \"{}\"; there {}", name,
                                                   list->empty() ? "is none at all" : "are: " + joined(list->names())));
}

Result<Context> Context::open_first_usable() {
  Result<DeviceList> list = DeviceList::read();
  if (!list) return tl::make_unexpected(list.error());
  std::string reasons;
  for (const std::string& name : list->names()) {
    Result<Context> context = open(name);
    if (!context) {
      reasons += "; " + context.error().message;
      continue;
    }
    const unsigned ports = port_count(context->get());
    for (unsigned port = 1; port <= ports; ++port) {
      const Result<PortView> view = context->query_port(static_cast<std::uint8_t>(port));
      if (view && is_usable(context->get(), *view)) return context;
      reasons += view ? fmt::format("; {} port {} is {} and has {}", name, port, view->state,
                                    view->active ? "no address" : "no link")
                      : "; " + view.error().message;
    }
  }
  return failure(ErrorCode::kNotFound, list->empty()
                                           ? std::string("no RDMA device; load a driver (modprobe rdma_rxe), or use "
                                                         "Verbena's own device (verbena run)")
                                           : "no RDMA device has an active port with an address" + reasons);
}

std::string Context::name() const {
  return get() != nullptr ? ibv_get_device_name(get()->device) : "";
}

Result<ibv_device_attr> Context::query_device() const {
  if (get() == nullptr) return is_not_open();
  ibv_device_attr attributes{};
  if (const int code = ibv_query_device(get(), &attributes); code != 0) {
    return rdma::verbs_failure("ibv_query_device", "of " + name(), rdma::errno_of(code));
  }
  return attributes;
}

Result<PortView> Context::query_port(std::uint8_t port) const {
  return verbena::query_port(get(), port);
}

Result<PortView> Context::first_active_port() const {
  if (get() == nullptr) return is_not_open();
  std::string states;
  const unsigned ports = port_count(get());
  for (unsigned port = 1; port <= ports; ++port) {
    Result<PortView> view = query_port(static_cast<std::uint8_t>(port));
    if (view && view->active) return view;
    states += view ? fmt::format("; port {} is {}", port, view->state) : "; " + view.error().message;
  }
  return failure(ErrorCode::kUnavailable, fmt::format("no port of {} is active{}; bring the interface up (ip link set "
                                                      "IFACE up)",
                                                      name(), states));
}

Result<PortView> query_port(ibv_context* context, std::uint8_t port) {
  if (context == nullptr) return is_not_open();
  ibv_port_attr attributes{};
  if (const int code = ibv_query_port(context, port, &attributes); code != 0) {
    return rdma::verbs_failure("ibv_query_port",
                               fmt::format("of {} port {}", ibv_get_device_name(context->device), port),
                               rdma::errno_of(code));
  }
  PortView view;
  view.port = port;
  view.link_layer = attributes.link_layer == IBV_LINK_LAYER_ETHERNET ? LinkLayer::kEthernet : LinkLayer::kInfiniBand;
  view.active = attributes.state == IBV_PORT_ACTIVE || attributes.state == IBV_PORT_ACTIVE_DEFER;
  view.state = ibv_port_state_str(attributes.state);
  view.active_mtu = attributes.active_mtu >= IBV_MTU_256 && attributes.active_mtu <= IBV_MTU_4096
                        ? 128U << static_cast<unsigned>(attributes.active_mtu)
                        : 0;
  view.lid = attributes.lid;
  view.lmc = attributes.lmc;
  view.gid_table_length = static_cast<std::uint32_t>(attributes.gid_tbl_len);
  view.grh_required = view.link_layer == LinkLayer::kEthernet || (attributes.flags & IBV_QPF_GRH_REQUIRED) != 0;
  view.bits_per_second = port_speed(attributes.active_width, attributes.active_speed).bits_per_second;
  return view;
}

}  // namespace verbena
