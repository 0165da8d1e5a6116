#include "rdma/doctor_finding.h"

#include <fmt/format.h>

namespace verbena::rdma {

std::string port_name(const DeviceFacts& device, const PortFacts& port) {
  return fmt::format("{} port {}", device.name, port.view.port);
}

const InterfaceFacts* find_interface(const HostFacts& host, std::uint32_t index) noexcept {
  for (const InterfaceFacts& interface : host.interfaces) {
    if (index != 0 && interface.index == index) return &interface;
  }
  return nullptr;
}

std::string interface_in_words(const HostFacts& host, std::uint32_t index) {
  const InterfaceFacts* interface = find_interface(host, index);
  if (interface != nullptr) return interface->name;
  return index == 0 ? std::string("an unnamed interface") : fmt::format("interface {}", index);
}

const DeviceFacts* find_device(const HostFacts& host, const std::string& name) noexcept {
  for (const DeviceFacts& device : host.devices) {
    if (device.name == name) return &device;
  }
  return nullptr;
}

const PortFacts* find_port(const DeviceFacts& device, std::uint8_t port) noexcept {
  for (const PortFacts& each : device.ports) {
    if (each.view.port == port) return &each;
  }
  return nullptr;
}

std::string address_text(const Gid& gid) {
  const std::string text = to_string(gid);
  return gid.is_ipv4_mapped() ? text.substr(text.rfind(':') + 1) : text;
}

const char* family_word(const Gid& gid) noexcept {
  if (gid.is_ipv4_mapped()) return "IPv4";
  return gid.is_link_local() ? "link-local IPv6" : "IPv6";
}

std::string counted(std::uint64_t count, const std::string& one, const std::string& many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

}  // namespace verbena::rdma
