// Reads the interfaces, addresses and default routes of this network namespace over rtnetlink, and tells when any
// of them has changed.
//
// Thread-safety: one thread at a time.
// Ownership:     owns its sockets.
#pragma once

#include <memory>

#include "device/network.h"
#include "verbena/result.h"

struct nl_sock;

namespace verbena::device {

class Netlink {
 public:
  static Result<std::unique_ptr<Netlink>> open();
  ~Netlink();
  Netlink(const Netlink&) = delete;
  Netlink& operator=(const Netlink&) = delete;

  // Readable when something may have changed.
  int fd() const noexcept;
  // Takes the notices that wait; true where a new read() is worth while.
  bool drain() noexcept;
  // A fresh picture; the kernel is asked each time.
  Result<Network> read();

 private:
  Netlink(nl_sock* requests, nl_sock* notices) : requests_(requests), notices_(notices) {}

  nl_sock* requests_;
  nl_sock* notices_;
};

}  // namespace verbena::device
