// The grammar of netlink, and a question to the kernel with all its answers: what the look-ups, the watcher and the
// doctor share, for rtnetlink and for the RDMA subsystem's own family.
//
// A message is a nlmsghdr, a fixed body by type, and attributes: length and type in 16 bits each, the value, padding to
// four bytes (netlink(7), rtnetlink(7)). Numbers are in host order, addresses in network order.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
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
  while (bytes.size() >= sizeof(nlattr)) {
    nlattr attribute;
    std::memcpy(&attribute, bytes.data(), sizeof attribute);
    if (attribute.nla_len < sizeof attribute || attribute.nla_len > bytes.size()) return;
    take(attribute.nla_type & NLA_TYPE_MASK, bytes.subspan(sizeof attribute, attribute.nla_len - sizeof attribute));
    bytes = bytes.subspan(std::min<std::size_t>(NLA_ALIGN(attribute.nla_len), bytes.size()));
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

// A number or a plain struct; zero where there are too few bytes.
template <class Number = std::uint32_t>
Number number_from(Octets value) {
  Number number{};
  if (value.size() >= sizeof number) std::memcpy(&number, value.data(), sizeof number);
  return number;
}

// Up to the first NUL.
std::string text_from(Octets value);

enum class Answers { kOne, kAll };  // kAll: a dump

// One message, built from its fixed body and attributes.
class NetlinkRequest {
 public:
  explicit NetlinkRequest(std::uint16_t type, Answers answers = Answers::kOne) : type_(type), answers_(answers) {}

  template <class Body>
  NetlinkRequest& fixed(const Body& body) {
    const std::size_t at = body_.size();
    body_.resize(at + NLMSG_ALIGN(sizeof body));
    std::memcpy(body_.data() + at, &body, sizeof body);
    return *this;
  }
  NetlinkRequest& attribute(std::uint16_t type, Octets value);
  NetlinkRequest& number(std::uint16_t type, std::uint32_t value);
  // With its NUL.
  NetlinkRequest& text(std::uint16_t type, std::string_view value);

  Answers answers() const noexcept { return answers_; }
  std::vector<std::uint8_t> bytes() const;

 private:
  std::uint16_t type_;
  Answers answers_;
  std::vector<std::uint8_t> body_;
};

// A descriptor that is closed with its owner.
class NetlinkSocket {
 public:
  // In the network namespace of the calling thread. `protocol`: NETLINK_ROUTE, NETLINK_RDMA; `flags` beside SOCK_RAW.
  static Result<NetlinkSocket> open(int protocol, int flags = 0);
  NetlinkSocket(NetlinkSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  NetlinkSocket& operator=(NetlinkSocket&&) = delete;
  ~NetlinkSocket();

  int fd() const noexcept { return fd_; }

 private:
  explicit NetlinkSocket(int fd) : fd_(fd) {}

  int fd_;
};

struct NetlinkMessage {
  std::uint16_t type = 0;
  std::vector<std::uint8_t> body{};  // behind the nlmsghdr
};

// The messages of what recv() gave, up to the first that does not fit.
std::vector<NetlinkMessage> split_messages(Octets received);

struct NetlinkAnswer {
  int refused = 0;  // a positive errno where the kernel refused; there are no messages then
  std::vector<NetlinkMessage> messages{};
};

// Asks the kernel and waits for the answers, for each part as long as its patience lasts. `what` names the question in
// errors ("a route").
// Errors: kUnsupported where the kernel has no such protocol, kUnavailable where it does not answer, else what the
// system calls said.
Result<NetlinkAnswer> ask_kernel(int protocol, const NetlinkRequest& request, const char* what,
                                 std::chrono::milliseconds patience = std::chrono::seconds(2));

}  // namespace verbena::rdma
