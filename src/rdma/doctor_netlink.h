// Questions to the kernel by netlink that the doctor has: one request, all answers. And the answers' attributes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <linux/netlink.h>

#include "verbena/result.h"

namespace verbena::rdma::kernel {

using Bytes = std::vector<std::uint8_t>;

struct NetlinkMessage {
  std::uint16_t type = 0;
  Bytes body{};  // behind the nlmsghdr
};

// One message, built from its fixed header and attributes.
class NetlinkRequest {
 public:
  NetlinkRequest(std::uint16_t type, bool dump) : type_(type), dump_(dump) {}

  template <class Fixed>
  NetlinkRequest& fixed(const Fixed& header) {
    const std::size_t at = body_.size();
    body_.resize(at + NLMSG_ALIGN(sizeof header));
    std::memcpy(body_.data() + at, &header, sizeof header);
    return *this;
  }
  NetlinkRequest& attribute(std::uint16_t type, std::span<const std::uint8_t> value);
  // With its NUL.
  NetlinkRequest& text(std::uint16_t type, std::string_view value);

  bool dump() const noexcept { return dump_; }
  Bytes bytes() const;

 private:
  std::uint16_t type_;
  bool dump_;
  Bytes body_;
};

// The messages of what recv() gave, up to the first that does not fit.
std::vector<NetlinkMessage> split_messages(std::span<const std::uint8_t> received);

// Sends the request and collects the answers: all of a dump, one otherwise. Waits at most two seconds.
// Errors: kUnsupported where the kernel has no such protocol, else what the kernel answered.
Result<std::vector<NetlinkMessage>> ask_kernel(int protocol, const NetlinkRequest& request);

// Calls `take(type, value)` for each attribute in `bytes`; stops at the first that does not fit.
template <class Take>
void for_each_attribute(std::span<const std::uint8_t> bytes, Take take) {
  while (bytes.size() >= sizeof(nlattr)) {
    nlattr attribute;
    std::memcpy(&attribute, bytes.data(), sizeof attribute);
    if (attribute.nla_len < sizeof attribute || attribute.nla_len > bytes.size()) return;
    take(attribute.nla_type & NLA_TYPE_MASK, bytes.subspan(sizeof attribute, attribute.nla_len - sizeof attribute));
    const std::size_t step = NLA_ALIGN(attribute.nla_len);
    bytes = bytes.subspan(step < bytes.size() ? step : bytes.size());
  }
}

// Zero where there are too few bytes.
template <class Number>
Number number_from(std::span<const std::uint8_t> value) {
  Number number{};
  if (value.size() >= sizeof number) std::memcpy(&number, value.data(), sizeof number);
  return number;
}

// Up to the first NUL.
std::string text_from(std::span<const std::uint8_t> value);

}  // namespace verbena::rdma::kernel
