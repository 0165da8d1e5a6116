// Findings in one line each, and words that several checks use. Pure.
#pragma once

#include <string>
#include <utility>

#include "rdma/doctor_facts.h"
#include "verbena/preflight.h"

namespace verbena::rdma {

inline Finding good(std::string check, std::string subject, std::string evidence) {
  return {.check = std::move(check),
          .severity = Severity::kGood,
          .subject = std::move(subject),
          .evidence = std::move(evidence)};
}

// Why something is not as it should be, and what to do.
struct Advice {
  std::string cause;
  std::string remedy{};
};

inline Finding finding(Severity severity, std::string check, std::string subject, std::string evidence, Advice advice) {
  return {.check = std::move(check),
          .severity = severity,
          .subject = std::move(subject),
          .evidence = std::move(evidence),
          .cause = std::move(advice.cause),
          .remedy = std::move(advice.remedy)};
}

// "mlx5_0 port 1".
std::string port_name(const DeviceFacts& device, const PortFacts& port);

// The interface with this index; nullptr where it is not in this network namespace, or the index is 0.
const InterfaceFacts* find_interface(const HostFacts& host, std::uint32_t index) noexcept;
std::string interface_in_words(const HostFacts& host, std::uint32_t index);

// The device with this name; nullptr.
const DeviceFacts* find_device(const HostFacts& host, const std::string& name) noexcept;
const PortFacts* find_port(const DeviceFacts& device, std::uint8_t port) noexcept;

// 10.0.0.1 for ::ffff:10.0.0.1, as people and ip(8) write it.
std::string address_text(const Gid& gid);

// "IPv4", "IPv6", "link-local IPv6".
const char* family_word(const Gid& gid) noexcept;

// "17 addresses", "1 address".
std::string counted(std::uint64_t count, const std::string& one, const std::string& many);

}  // namespace verbena::rdma
