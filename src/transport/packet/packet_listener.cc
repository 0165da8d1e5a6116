#include "transport/packet/packet_listener.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#include "base/byte_order.h"
#include "transport/no_cancel.h"
#include "transport/packet/packet_socket.h"
#include "transport/system_error.h"

namespace verbena::transport {
namespace {

constexpr std::size_t kMacs = 12;  // both addresses, behind which a VLAN tag stands
constexpr std::size_t kTag = 4;
constexpr std::size_t kControlBytes = CMSG_SPACE(sizeof(tpacket_auxdata)) + CMSG_SPACE(sizeof(std::uint32_t));
constexpr int kBufferBytes = 4 << 20;

Status set(int fd, int level, int name, int value, const char* what) {
  if (::setsockopt(fd, level, name, &value, sizeof value) != 0) return system_failure(what);
  return {};
}

Status prepare(int fd, unsigned interface_index) {
  if (auto done = set(fd, SOL_PACKET, PACKET_AUXDATA, 1, "Cannot ask for the VLAN tags of frames"); !done) return done;
  // Not before Linux 4.20; then each frame says by itself that it was sent.
  static_cast<void>(set(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, ""));
  if (auto done = set(fd, SOL_SOCKET, SO_RXQ_OVFL, 1, "Cannot ask for the count of lost frames"); !done) return done;
  if (!set(fd, SOL_SOCKET, SO_RCVBUFFORCE, kBufferBytes, "")) {
    static_cast<void>(set(fd, SOL_SOCKET, SO_RCVBUF, kBufferBytes, ""));
  }
  sockaddr_ll at{};
  at.sll_family = AF_PACKET;
  at.sll_protocol = htons(ETH_P_ALL);
  at.sll_ifindex = static_cast<int>(interface_index);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
    return system_failure("Cannot receive the frames of interface " + std::to_string(interface_index));
  }
  return {};
}

struct Details {
  bool has_tag = false;
  std::uint16_t tag_type = ETH_P_8021Q;
  std::uint16_t tag = 0;
  std::uint32_t overflows = 0;
  bool has_overflows = false;
};

Details read_control(msghdr& message) noexcept {
  Details details;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SO_RXQ_OVFL) {
      std::memcpy(&details.overflows, CMSG_DATA(part), sizeof details.overflows);
      details.has_overflows = true;
    }
    if (part->cmsg_level != SOL_PACKET || part->cmsg_type != PACKET_AUXDATA) continue;
    tpacket_auxdata data{};
    std::memcpy(&data, CMSG_DATA(part), sizeof data);
    details.has_tag = (data.tp_status & TP_STATUS_VLAN_VALID) != 0;
    details.tag = data.tp_vlan_tci;
    if ((data.tp_status & TP_STATUS_VLAN_TPID_VALID) != 0) details.tag_type = data.tp_vlan_tpid;
  }
  return details;
}

}  // namespace

struct PacketListener::Arena {
  std::array<mmsghdr, kRun> headers{};
  std::array<sockaddr_ll, kRun> senders{};
  std::array<std::array<std::byte, kControlBytes>, kRun> controls alignas(cmsghdr){};
  std::array<iovec, kRun> parts{};
  std::array<ConstBytes, kRun> frames{};  // as they are handed on; empty for what is not
  // A frame is read behind room for a tag. Not set to anything: only what frames fill is ever touched.
  std::array<std::array<std::byte, kTag + kMaxBytes>, kRun> bytes alignas(64);
};

PacketListener::PacketListener(unsigned interface_index, Fd socket, DropCounter& drops)
    : interface_index_(interface_index), socket_(std::move(socket)), drops_(drops), arena_(new Arena) {
  for (std::size_t i = 0; i < kRun; ++i) arena_->parts[i] = {arena_->bytes[i].data() + kTag, kMaxBytes};
}

PacketListener::~PacketListener() = default;

Result<std::unique_ptr<PacketListener>> PacketListener::open(unsigned interface_index, DropCounter& drops,
                                                             ForkSet& forks) {
  auto socket = open_packet_socket(interface_index, forks);
  if (!socket) return tl::make_unexpected(socket.error());
  if (auto ready = prepare(socket->get(), interface_index); !ready) return tl::make_unexpected(ready.error());
  return std::unique_ptr<PacketListener>(new PacketListener(interface_index, std::move(*socket), drops));
}

Status PacketListener::change(int option, const FrameReach& reach) noexcept {
  packet_mreq request{};
  request.mr_ifindex = static_cast<int>(interface_index_);
  switch (reach.kind) {
    case FrameReach::Kind::kOwn:
      return {};
    case FrameReach::Kind::kAddress:
      request.mr_type = PACKET_MR_UNICAST;
      break;
    case FrameReach::Kind::kGroup:
      request.mr_type = PACKET_MR_MULTICAST;
      break;
    case FrameReach::Kind::kAllGroups:
      request.mr_type = PACKET_MR_ALLMULTI;
      break;
    case FrameReach::Kind::kEverything:
      request.mr_type = PACKET_MR_PROMISC;
      break;
  }
  if (request.mr_type == PACKET_MR_UNICAST || request.mr_type == PACKET_MR_MULTICAST) {
    request.mr_alen = static_cast<unsigned short>(reach.mac.size());
    std::copy(reach.mac.begin(), reach.mac.end(), request.mr_address);
  }
  if (::setsockopt(socket_.get(), SOL_PACKET, option, &request, sizeof request) == 0) return {};
  return system_failure("The interface cannot be made to let these frames through");
}

Status PacketListener::reach(const FrameReach& reach) noexcept {
  return change(PACKET_ADD_MEMBERSHIP, reach);
}

void PacketListener::leave(const FrameReach& reach) noexcept {
  static_cast<void>(change(PACKET_DROP_MEMBERSHIP, reach));
}

// What was read, with its tag where the kernel took one out. Empty where it is not to be handed on.
ConstBytes PacketListener::finish(std::size_t index) noexcept {
  msghdr& message = arena_->headers[index].msg_hdr;
  if (arena_->senders[index].sll_pkttype == PACKET_OUTGOING) return {};
  if ((message.msg_flags & MSG_TRUNC) != 0) {
    drops_.count(Drop::kFrameCoalesced);
    return {};
  }
  std::byte* const begin = arena_->bytes[index].data();
  const std::size_t size = arena_->headers[index].msg_len;
  const Details details = read_control(message);
  if (!details.has_tag || size < kMacs) return ConstBytes(begin + kTag, size);
  std::memmove(begin, begin + kTag, kMacs);
  store_be16(begin + kMacs, details.tag_type);
  store_be16(begin + kMacs + 2, details.tag);
  return ConstBytes(begin, size + kTag);
}

void PacketListener::read() noexcept {
  for (std::size_t i = 0; i < kRun; ++i) {
    msghdr& message = arena_->headers[i].msg_hdr;
    message.msg_name = &arena_->senders[i];
    message.msg_namelen = sizeof arena_->senders[i];
    message.msg_iov = &arena_->parts[i];
    message.msg_iovlen = 1;
    message.msg_control = arena_->controls[i].data();
    message.msg_controllen = kControlBytes;
    message.msg_flags = 0;
  }
  const NoCancel guard;
  const int count = ::recvmmsg(socket_.get(), arena_->headers.data(), kRun, MSG_DONTWAIT, nullptr);
  first_ = 0;
  left_ = count < 0 ? 0 : static_cast<std::size_t>(count);
  if (left_ == 0) return;
  for (std::size_t i = 0; i < left_; ++i) arena_->frames[i] = finish(i);
  const Details last = read_control(arena_->headers[left_ - 1].msg_hdr);  // the kernel's count only grows
  if (last.has_overflows && last.overflows != overflows_) {
    drops_.count(Drop::kSocketOverflow, last.overflows - overflows_);
    overflows_ = last.overflows;
  }
}

std::size_t PacketListener::receive(FrameReceiver& receiver, std::size_t budget) noexcept {
  std::size_t taken = 0;
  while (taken < budget) {
    if (left_ == 0) read();
    if (left_ == 0) break;
    const bool whole_run = left_ == kRun;
    for (; left_ != 0; ++first_, --left_, ++taken) {
      const ConstBytes frame = arena_->frames[first_];
      if (!frame.empty() && receiver.on_frame(frame) == Receipt::kLater) return taken;
    }
    if (!whole_run) break;
  }
  return taken;
}

}  // namespace verbena::transport
