// What the kernel's RDMA subsystem tells by its own netlink family (NETLINK_RDMA, NLDEV): its devices, what exists on
// them, and whether they are shared between network namespaces. The readers are pure.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rdma/doctor_facts.h"
#include "rdma/netlink.h"

namespace verbena::rdma {

// From the answer to RDMA_NLDEV_CMD_SYS_GET; nothing where it does not say.
std::optional<RdmaNamespaceMode> read_namespace_mode(std::span<const std::uint8_t> body);
// From one answer to RDMA_NLDEV_CMD_GET or RES_GET; empty where it names none.
std::string read_device_name(std::span<const std::uint8_t> body);
// From one answer to RDMA_NLDEV_CMD_RES_GET.
std::vector<ResourceCount> read_resources(std::span<const std::uint8_t> body);

struct KernelRdma {
  bool present = false;  // it answers
  std::optional<RdmaNamespaceMode> mode{};
  std::vector<std::string> devices{};
  std::map<std::string, std::vector<ResourceCount>> resources{};  // by device
};

KernelRdma ask_kernel_rdma();

}  // namespace verbena::rdma
