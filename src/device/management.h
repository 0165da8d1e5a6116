// The general services queue pair (QP 1) of all ports of this process, as far as connections need it: management
// datagrams of class 7 go out by UDP, and those that arrive go to whom they are for on this host, over the sockets of
// host/management_name.h, which is this process as likely as another. No process on the host owns QP 1: whichever the
// kernel gave the datagram hands it on.
//
// Where nobody is there for it, the other end is told: a request is rejected, a request to disconnect is agreed to.
//
// Thread-safety: any thread.
// Ownership:     owns one socket; keeps a reference to the sender.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/drop.h"
#include "base/envelope.h"
#include "base/instant.h"
#include "host/management_message.h"
#include "transport/datagram.h"
#include "verbena/result.h"
#include "wire/mad.h"
#include "wire/packet.h"

namespace verbena::device {

class Management {
 public:
  explicit Management(transport::Sender& sender) noexcept : sender_(sender) {}
  ~Management();
  Management(const Management&) = delete;
  Management& operator=(const Management&) = delete;

  Status open();
  void abandon() noexcept;  // in the child of a fork

  // A packet for QP 1 that UDP brought. Requires: an RCU read section.
  Drop on_packet(const wire::Packet& packet, const Envelope& envelope, Instant now) noexcept;

  enum class Delivery : std::uint8_t {
    kDone,
    kNobody,    // nobody here has the connection or the service
    kFull,      // who has it does not keep up
    kNotKnown,  // no message of connections
  };
  Delivery deliver(const host::ManagementMessage& message) noexcept;

  // By UDP. Requires: an RCU read section; `message.source` is an address of a port of this process.
  Drop send(const host::ManagementMessage& message, Instant now) noexcept;

  // What is said to who sent `message`, where nobody has what it is for; nothing for messages that want no answer.
  static std::optional<host::ManagementMessage> answer_of_nobody(const host::ManagementMessage& message) noexcept;

 private:
  transport::Sender& sender_;
  int socket_ = -1;
  std::atomic<std::uint32_t> psn_{0};  // relaxed: only counts
};

}  // namespace verbena::device
