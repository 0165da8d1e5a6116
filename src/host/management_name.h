// Where the management datagrams of connections go on one host: abstract Unix sockets (SOCK_DGRAM), which the kernel
// makes unique, scopes to the network namespace and frees when the process dies.
//
//     "\0verbena/1/cm/process/<n>"            a process; n in decimal, 0..4095, is the top of the ids of its
//     connections
//     "\0verbena/1/cm/service/<id>/<gid>"     who listens for a service at one address: id in 16 hex digits
//     "\0verbena/1/cm/service/<id>/any"       at every address of this host
//
// What arrives there is written as host/management_message.h says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "verbena/gid.h"

namespace verbena::host {

// Of the 32 bits of a connection's id.
inline constexpr unsigned kConnectionProcessBits = 12;
inline constexpr unsigned kConnectionProcesses = 1U << kConnectionProcessBits;
inline constexpr unsigned kConnectionIndexBits = 32 - kConnectionProcessBits;

constexpr unsigned process_of_connection(std::uint32_t id) noexcept {
  return id >> kConnectionIndexBits;
}

// Each with its leading NUL, as sun_path takes it.
std::string connection_process_name(unsigned process);
// `at` nothing: at every address.
std::string service_name(std::uint64_t service, const std::optional<Gid>& at);

// Whether a line of /proc/net/unix is that of somebody who listens for `service`, at whatever address.
bool is_service_line(std::string_view line, std::uint64_t service) noexcept;

}  // namespace verbena::host
