#include "transport/packet/packet_sender.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include <sys/socket.h>

#include "transport/no_cancel.h"
#include "transport/packet/packet_socket.h"

namespace verbena::transport {
namespace {

constexpr std::size_t kRun = 32;
constexpr std::size_t kParts = 256;

Drop drop_of(int error) noexcept {
  switch (error) {
    case EMSGSIZE:
      return Drop::kDatagramTooLong;
    case ENETDOWN:
    case ENODEV:
    case ENXIO:
      return Drop::kPortDown;
    default:
      return Drop::kSocketError;
  }
}

}  // namespace

Result<std::unique_ptr<PacketSender>> PacketSender::open(unsigned interface_index, DropCounter& drops, ForkSet& forks) {
  auto socket = open_packet_socket(interface_index, forks);
  if (!socket) return tl::make_unexpected(socket.error());
  return std::unique_ptr<PacketSender>(new PacketSender(std::move(*socket), drops));
}

void PacketSender::refuse(const Outgoing& frame, int error) noexcept {
  const Drop drop = drop_of(error);
  drops_.count(drop);
  const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(drop);
  if ((explained_.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) return;
  drops_.explain("The kernel refused an Ethernet frame of " + std::to_string(frame.size) +
                 " bytes: " + std::generic_category().message(error) + ". Counted as " +
                 std::string(row_of(drop).name) + "; not reported again.");
}

// Sends those at the front. Returns how many were sent or dropped.
std::size_t PacketSender::send_run(std::span<const Outgoing> batch, bool& full) noexcept {
  std::array<mmsghdr, kRun> headers;
  std::array<iovec, kParts> parts;
  std::size_t count = 0;
  std::size_t used = 0;
  for (const Outgoing& frame : batch.first(std::min(batch.size(), kRun))) {
    if (used + frame.parts.size() > kParts) break;
    const std::size_t first = used;
    for (const auto part : frame.parts) {
      if (!part.empty()) parts[used++] = {const_cast<std::byte*>(part.data()), part.size()};
    }
    headers[count] = {};
    headers[count].msg_hdr.msg_iov = &parts[first];
    headers[count].msg_hdr.msg_iovlen = used - first;
    ++count;
  }
  const NoCancel guard;
  const int sent = ::sendmmsg(socket_.get(), headers.data(), static_cast<unsigned>(count), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent > 0) return static_cast<std::size_t>(sent);
  if (errno == EINTR) return 0;
  if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM) {
    full = true;
    return 0;
  }
  refuse(batch.front(), errno);
  return 1;
}

SendResult PacketSender::send(std::span<const Outgoing> batch, Instant /*now*/) noexcept {
  SendResult result;
  while (result.taken < batch.size() && !result.full) {
    result.taken += send_run(batch.subspan(result.taken), result.full);
  }
  return result;
}

}  // namespace verbena::transport
