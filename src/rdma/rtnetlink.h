// The grammar of rtnetlink, and one question with one answer: what the look-ups and the watcher share.
//
// A message is a nlmsghdr, a fixed body by type, and attributes: length and type in 16 bits each, the value, padding to
// four bytes (rtnetlink(7)). Numbers are in host order, addresses in network order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "verbena/gid.h"
#include "verbena/result.h"

namespace verbena::rdma {

using Octets = std::span<const std::uint8_t>;

// Calls `take(type, value)` for each attribute in `bytes`; stops at the first that does not fit.
template <class Take>
void for_each_attribute(Octets bytes, Take take) {
  while (bytes.size() >= sizeof(rtattr)) {
    rtattr attribute;
    std::memcpy(&attribute, bytes.data(), sizeof attribute);
    if (attribute.rta_len < sizeof attribute || attribute.rta_len > bytes.size()) return;
    take(attribute.rta_type & NLA_TYPE_MASK, bytes.subspan(sizeof attribute, attribute.rta_len - sizeof attribute));
    bytes = bytes.subspan(std::min<std::size_t>(RTA_ALIGN(attribute.rta_len), bytes.size()));
  }
}

// The fixed body at the front of `bytes`, and what follows it. Requires: bytes.size() >= sizeof(Body).
template <class Body>
std::pair<Body, Octets> split_body(Octets bytes) {
  Body body;
  std::memcpy(&body, bytes.data(), sizeof body);
  return {body, bytes.subspan(std::min<std::size_t>(NLMSG_ALIGN(sizeof body), bytes.size()))};
}

// Of 4 bytes (IPv4) or 16; zero for any other length.
Gid gid_from(Octets address);
// The address as the kernel takes it: the last 4 bytes of an IPv4 one. Points into `gid`.
Octets address_in(const Gid& gid);
// Zero where there are fewer than four bytes.
std::uint32_t number_from(Octets value);

class NetlinkRequest {
 public:
  template <class Body>
  NetlinkRequest(std::uint16_t type, const Body& body) : bytes_(NLMSG_LENGTH(sizeof body)) {
    nlmsghdr header{};
    header.nlmsg_type = type;
    header.nlmsg_flags = NLM_F_REQUEST;
    std::memcpy(bytes_.data(), &header, sizeof header);
    std::memcpy(bytes_.data() + NLMSG_HDRLEN, &body, sizeof body);
  }

  void append(std::uint16_t type, Octets value);
  void append(std::uint16_t type, std::uint32_t number);
  // With the length filled in.
  Octets bytes();

 private:
  std::vector<std::uint8_t> bytes_;
};

// A descriptor that is closed with its owner.
class NetlinkSocket {
 public:
  // In the network namespace of the calling thread. `flags` beside SOCK_RAW.
  static Result<NetlinkSocket> open(int flags);
  NetlinkSocket(NetlinkSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  NetlinkSocket& operator=(NetlinkSocket&&) = delete;
  ~NetlinkSocket();

  int fd() const noexcept { return fd_; }

 private:
  explicit NetlinkSocket(int fd) : fd_(fd) {}

  int fd_;
};

// One message of the kernel: `type`, and what stands behind the header.
struct NetlinkAnswer {
  std::uint16_t type = 0;
  int error = 0;  // a positive errno where the type is NLMSG_ERROR
  std::vector<std::uint8_t> body;
};

// Asks the kernel and waits for the one answer. `what` names the question in errors ("a route").
Result<NetlinkAnswer> ask_kernel(NetlinkRequest request, const char* what);

}  // namespace verbena::rdma
