#include "transport/shm/slot_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include <sys/socket.h>
#include <sys/un.h>

#include "host/slot_name.h"
#include "transport/system_error.h"

namespace verbena::transport {
namespace {

constexpr int kBacklog = 255;
constexpr std::size_t kMaxDescriptors = 8;  // that are looked at; what is more the kernel closes
constexpr std::size_t kControlBytes = CMSG_SPACE(kMaxDescriptors * sizeof(int));

struct SlotAddress {
  sockaddr_un address{};
  socklen_t length = 0;
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&address); }
};

SlotAddress address_of(Slot slot) {
  const auto name = host::slot_name(slot);
  SlotAddress at;
  at.address.sun_family = AF_UNIX;
  std::memcpy(at.address.sun_path, name.data(), std::min(name.size(), sizeof at.address.sun_path));
  at.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  return at;
}

Result<Fd> slot_socket(ForkSet& set) {
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return system_failure("Cannot make a Unix socket");
  return Fd(fd, set);
}

std::string described(Slot slot) {
  return "slot " + std::to_string(slot.value()) + " (abstract Unix socket @verbena/1/slot/" +
         std::to_string(slot.value()) + ")";
}

// Takes ownership of each descriptor in the control data, at most two; the others are closed.
std::size_t take_descriptors(msghdr& message, std::array<Fd, 2>& into, ForkSet& set) {
  std::size_t count = 0;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t here = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < here; ++i, ++count) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      Fd owned(fd, set);
      if (count < into.size()) into[count] = std::move(owned);
    }
  }
  return count;
}

}  // namespace

Result<Fd> listen_on_slot(Slot slot, ForkSet& set) {
  auto fd = slot_socket(set);
  if (!fd) return fd;
  const auto at = address_of(slot);
  if (::bind(fd->get(), at.get(), at.length) != 0) return system_failure("Cannot take " + described(slot));
  if (::listen(fd->get(), kBacklog) != 0) return system_failure("Cannot listen on " + described(slot));
  return fd;
}

Result<Fd> connect_to_slot(Slot slot, ForkSet& set) {
  auto fd = slot_socket(set);
  if (!fd) return fd;
  const auto at = address_of(slot);
  if (::connect(fd->get(), at.get(), at.length) == 0) return fd;
  const auto code = errno == ECONNREFUSED ? ErrorCode::kNotFound : ErrorCode::kBusy;
  const int number = errno;
  return failure(code, "Cannot connect to " + described(slot) + ".", number);
}

std::optional<Fd> accept_connection(int listener, ForkSet& set) {
  const int fd = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return std::nullopt;
  return Fd(fd, set);
}

std::optional<uid_t> peer_user(int connection) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return std::nullopt;
  return peer.uid;
}

bool send_hello(int connection, const host::Hello& hello, std::span<const int> descriptors) {
  auto bytes = host::encode(hello);
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<std::byte, kControlBytes> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  return ::sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(bytes.size());
}

ReceivedHello receive_hello(int connection, ForkSet& set) {
  using Outcome = ReceivedHello::Outcome;
  ReceivedHello received;
  std::array<std::byte, 2 * host::kHelloBytes> bytes{};  // longer, for what later versions append
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<std::byte, kControlBytes> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(connection, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (size < 0) {
    received.outcome = errno == EAGAIN || errno == EINTR ? Outcome::kNothingYet : Outcome::kEnded;
    return received;
  }
  const std::size_t count = take_descriptors(message, received.descriptors, set);
  if (size == 0) {
    received.outcome = Outcome::kEnded;
    return received;
  }
  const auto hello = host::decode_hello(std::span(bytes).first(static_cast<std::size_t>(size)));
  if (!hello || (message.msg_flags & MSG_CTRUNC) != 0 || count != host::descriptors_with(hello->kind)) return received;
  received.hello = *hello;
  received.outcome = Outcome::kHello;
  return received;
}

}  // namespace verbena::transport
