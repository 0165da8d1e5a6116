#include "cli/process_socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/clock.h"
#include "cli/descriptor_limit.h"

namespace verbena::cli {
namespace {

constexpr std::size_t kLargestPage = std::size_t{1} << 22;

// The descriptors that came with `header`; the caller owns them.
std::vector<Descriptor> take_descriptors(msghdr& header) {
  std::vector<Descriptor> taken;
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr; control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof fd);
      taken.emplace_back(fd);
    }
  }
  return taken;
}

// Memory that cannot shrink under the reader, and so cannot fault.
bool is_sealed(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

}  // namespace

Result<std::vector<std::string>> listed_sockets() {
  errno = 0;
  std::ifstream file("/proc/net/unix");
  if (const int number = errno; !file && is_descriptor_shortage(number)) {
    return tl::make_unexpected(descriptor_shortage("cannot read /proc/net/unix", number));
  }
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  if (lines.empty()) return failure(ErrorCode::kUnavailable, "cannot read /proc/net/unix: is /proc mounted?");
  return lines;
}

Descriptor connect_to(std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  errno = ENAMETOOLONG;
  if (name.size() > sizeof address.sun_path) return {};
  std::memcpy(address.sun_path, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return {};
  // The sockets interface takes every kind of address through the one type.
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(socket.get(), generic, length) != 0) return {};
  return socket;
}

bool wait_readable(const Descriptor& socket, Instant deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now());
  pollfd readable{socket.get(), POLLIN, 0};
  return ::poll(&readable, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0))) > 0;
}

ucred peer_of(const Descriptor& socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length);
  return peer;
}

bool is_gone(const ucred& peer) {
  return peer.pid > 0 && ::kill(peer.pid, 0) != 0 && errno == ESRCH;
}

std::string why_closed(const ucred& peer) {
  if (::geteuid() != 0 && peer.uid != ::geteuid()) {
    return fmt::format("it belongs to another user (uid {}); ask as that user or as root", peer.uid);
  }
  return "it closed the connection without an answer";
}

Received receive(const Descriptor& socket, std::span<std::byte> into) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control{};
  iovec part{into.data(), into.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(socket.get(), &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (size <= 0) return {};
  auto descriptors = take_descriptors(header);
  // The kernel says only that control data is missing, also where more descriptors came than there is room for.
  const bool refused = descriptors.empty() && (header.msg_flags & MSG_CTRUNC) != 0;
  return {static_cast<std::size_t>(size), std::move(descriptors), refused};
}

Result<host::CounterPageReading> read_page(const Descriptor& page_fd) {
  const int fd = page_fd.get();
  struct stat status {};
  if (!is_sealed(fd) || ::fstat(fd, &status) != 0) {
    return failure(ErrorCode::kInvalidArgument, "what it sent is not sealed memory");
  }
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes == 0 || bytes > kLargestPage) {
    return failure(ErrorCode::kInvalidArgument, fmt::format("it sent a counter page of {} bytes", bytes));
  }
  void* memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    return failure(ErrorCode::kUnavailable, fmt::format("cannot map its counters: {}", std::strerror(errno)), errno);
  }
  auto page = host::read_counter_page({static_cast<const std::byte*>(memory), bytes});
  ::munmap(memory, bytes);
  return page;
}

}  // namespace verbena::cli
