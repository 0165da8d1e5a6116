#include "rdma/doctor_rdma_netlink.h"

#include <rdma/rdma_netlink.h>

namespace verbena::rdma {
namespace {

// Nothing where it does not answer, or refuses.
std::optional<std::vector<NetlinkMessage>> ask(int command, Answers answers) {
  const auto type = static_cast<std::uint16_t>(RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command));
  auto answer = ask_kernel(NETLINK_RDMA, NetlinkRequest(type, answers), "RDMA devices");
  if (!answer || answer->refused != 0) return std::nullopt;
  return std::move(answer->messages);
}

ResourceCount read_resource(std::span<const std::uint8_t> entry) {
  ResourceCount count;
  for_each_attribute(entry, [&](int type, std::span<const std::uint8_t> value) {
    if (type == RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME) count.name = text_from(value);
    if (type == RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR) count.current = number_from<std::uint64_t>(value);
  });
  return count;
}

}  // namespace

std::optional<RdmaNamespaceMode> read_namespace_mode(std::span<const std::uint8_t> body) {
  std::optional<RdmaNamespaceMode> mode;
  for_each_attribute(body, [&](int type, std::span<const std::uint8_t> value) {
    if (type != RDMA_NLDEV_SYS_ATTR_NETNS_MODE || value.empty()) return;
    mode = value.front() == 0 ? RdmaNamespaceMode::kExclusive : RdmaNamespaceMode::kShared;
  });
  return mode;
}

std::string read_device_name(std::span<const std::uint8_t> body) {
  std::string name;
  for_each_attribute(body, [&](int type, std::span<const std::uint8_t> value) {
    if (type == RDMA_NLDEV_ATTR_DEV_NAME) name = text_from(value);
  });
  return name;
}

std::vector<ResourceCount> read_resources(std::span<const std::uint8_t> body) {
  std::vector<ResourceCount> counts;
  for_each_attribute(body, [&](int type, std::span<const std::uint8_t> summary) {
    if (type != RDMA_NLDEV_ATTR_RES_SUMMARY) return;
    for_each_attribute(summary, [&](int inner, std::span<const std::uint8_t> entry) {
      if (inner == RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY) counts.push_back(read_resource(entry));
    });
  });
  return counts;
}

KernelRdma ask_kernel_rdma() {
  KernelRdma rdma;
  const auto devices = ask(RDMA_NLDEV_CMD_GET, Answers::kAll);
  if (!devices) return rdma;
  rdma.present = true;
  for (const NetlinkMessage& message : *devices) {
    if (std::string name = read_device_name(message.body); !name.empty()) rdma.devices.push_back(std::move(name));
  }
  if (const auto system = ask(RDMA_NLDEV_CMD_SYS_GET, Answers::kOne); system && !system->empty()) {
    rdma.mode = read_namespace_mode(system->front().body);
  }
  if (const auto resources = ask(RDMA_NLDEV_CMD_RES_GET, Answers::kAll)) {
    for (const NetlinkMessage& message : *resources) {
      rdma.resources[read_device_name(message.body)] = read_resources(message.body);
    }
  }
  return rdma;
}

}  // namespace verbena::rdma
