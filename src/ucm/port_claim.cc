#include "ucm/port_claim.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "device/log.h"
#include "host/management_name.h"

namespace verbena::ucm {
namespace {

constexpr std::uint16_t kFirstFree = 32768;
constexpr std::uint16_t kFreeCount = 28232;

bool is_claimed_anywhere(std::uint64_t service) {
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    if (host::is_service_line(line, service)) return true;
  }
  return false;
}

// Whether the other kind of name stands in the way: any address against a single one, and the reverse.
bool is_shut_out(std::uint64_t service, const std::optional<Gid>& at) {
  if (!at) return is_claimed_anywhere(service);
  const transport::Fd probe = bind_abstract(host::service_name(service, {}));
  return !probe && errno == EADDRINUSE;
}

}  // namespace

transport::Fd bind_abstract(const std::string& name) noexcept {
  transport::Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return socket;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), std::min(name.size(), sizeof address.sun_path));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0) return socket;
  const int error = errno;
  socket = transport::Fd();
  errno = error;
  return socket;
}

Result<PortClaim> PortClaim::take(wire::PortSpace space, std::uint16_t port, const std::optional<Gid>& at, bool shared,
                                  std::uint32_t seed) {
  const unsigned attempts = port == 0 ? kFreeCount : 1;
  for (unsigned i = 0; i < attempts; ++i) {
    const auto tried = port != 0 ? port : static_cast<std::uint16_t>(kFirstFree + (seed + i) % kFreeCount);
    const std::uint64_t service = wire::service_id(space, tried);
    if (!shared && is_shut_out(service, at)) continue;
    transport::Fd socket = bind_abstract(host::service_name(service, at));
    if (socket) return PortClaim(std::move(socket), tried);
    if (errno != EADDRINUSE) return tl::make_unexpected(device::system_error("a socket for a port of rdma_cm"));
  }
  return failure(ErrorCode::kBusy,
                 port == 0 ? "no port of rdma_cm is free on this host"
                           : fmt::format("port {} of rdma_cm is bound by another identifier on this host", port),
                 EADDRINUSE);
}

}  // namespace verbena::ucm
