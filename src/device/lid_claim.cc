#include "device/lid_claim.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "host/lid_name.h"
#include "transport/system_error.h"

namespace verbena::device {
namespace {

constexpr std::uint32_t kMostCopies = 1024;

std::string range_name(std::uint16_t first, std::uint16_t last) {
  return first == last ? fmt::format("LID {}", first) : fmt::format("LIDs {} to {}", first, last);
}

std::string process_name(std::uint32_t pid) {
  std::ifstream file(fmt::format("/proc/{}/comm", pid));
  std::string name;
  if (!std::getline(file, name)) return fmt::format("process {}", pid);
  return fmt::format("process {} ({})", pid, name);
}

bool bind_to(const transport::Fd& socket, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0;
}

Status look_for_clash(const host::LidHolder& own) {
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    const auto other = host::parse_lid_line(line);
    if (!other || !clash(own, *other)) continue;
    return failure(ErrorCode::kBusy,
                   fmt::format("{} of port GUID {:#018x} {} with {} of port GUID {:#018x}, which {} has in this "
                               "network namespace: give one of them another lid= in VERBENA_DEVICES",
                               range_name(own.first, own.last), own.guid, own.first == own.last ? "clashes" : "clash",
                               range_name(other->first, other->last), other->guid, process_name(other->pid)),
                   EADDRINUSE);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<LidClaim>> LidClaim::take(const InfinibandPort& port) {
  host::LidHolder own{port.lid, port.last_lid(), port.guid, static_cast<std::uint32_t>(getpid())};
  transport::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return transport::system_failure("Cannot make a socket to claim a LID");
  // A name may be this process' own, of another device with the same port, or that of a process with the same number in
  // another PID namespace.
  while (!bind_to(socket, host::lid_name(own))) {
    if (errno != EADDRINUSE || ++own.copy == kMostCopies) {
      return transport::system_failure("Cannot claim " + range_name(own.first, own.last));
    }
  }
  if (::listen(socket.get(), 0) != 0) {
    return transport::system_failure("Cannot claim " + range_name(own.first, own.last));
  }
  if (auto checked = look_for_clash(own); !checked) return tl::make_unexpected(checked.error());
  return std::unique_ptr<LidClaim>(new LidClaim(std::move(socket)));
}

}  // namespace verbena::device
