// A fake device with a directory on it, as most tests of the middleware want it: port 1 is Ethernet with a link-local
// GID, and 10.0.0.1 as RoCE v1 and v2; every destination is routed by its interface.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_verbs/fake_verbs.h"
#include "verbena/address_directory.h"
#include "verbena/completion_queue.h"
#include "verbena/device.h"
#include "verbena/memory_region.h"
#include "verbena/protection_domain.h"
#include "verbena/queue_pair.h"

namespace verbena::fake {

inline constexpr std::uint32_t kNetdev = 7;

inline Gid ipv4(std::uint32_t last_two) {
  return Gid::from_ipv4(0x0a000000 + last_two);
}

inline Gid link_local(std::uint8_t last) {
  Gid gid;
  gid.bytes[0] = 0xfe;
  gid.bytes[1] = 0x80;
  gid.bytes[15] = last;
  return gid;
}

inline Destination to(std::uint32_t last_two) {
  Destination destination;
  destination.gid = ipv4(last_two);
  return destination;
}

inline std::vector<GidPlace> usual_gids() {
  return {{link_local(1), IBV_GID_TYPE_ROCE_V2, kNetdev},
          {ipv4(1), IBV_GID_TYPE_ROCE_V1, kNetdev},
          {ipv4(1), IBV_GID_TYPE_ROCE_V2, kNetdev}};
}

inline Result<Route> usual_route(const Gid&, std::uint32_t) {
  return Route{.netdev = kNetdev, .source = ipv4(1), .gateway = {}, .local = false, .mtu = 0};
}

// Far beyond what a test takes: reaching it is the failure.
inline Deadline soon() {
  return Deadline::in(std::chrono::seconds(60));
}

inline ibv_async_event event_of(ibv_event_type type, int port = 1) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.port_num = port;
  return event;
}

// Lets the background threads work until it is true; false where that never comes.
template <class Condition>
bool eventually(Condition condition) {
  const Deadline deadline = soon();
  while (!condition()) {
    if (deadline.passed()) return false;
    std::this_thread::yield();
  }
  return true;
}

class AhWorld : public ::testing::Test {
 protected:
  AhWorld() {
    reset();
    Port port;
    port.gids = usual_gids();
    add_device("fake0", {port, port});
    context = std::move(*Context::open("fake0"));
    domain = std::move(*ProtectionDomain::create(context));
  }

  ~AhWorld() override { EXPECT_EQ(violations().sum(), 0U); }

  static AhDirectoryOptions options() {
    AhDirectoryOptions options;
    options.routes = usual_route;
    options.first_back_off = std::chrono::hours(1);  // a test that wants a retry says so
    options.max_back_off = std::chrono::hours(1);
    options.close_grace = std::chrono::milliseconds(10);
    options.watch_network = false;
    options.neighbours = {};
    return options;
  }

  AhDirectory make_directory(AhDirectoryOptions with = options()) {
    Result<AhDirectory> made = AhDirectory::create(domain, 1, std::move(with));
    if (!made) {
      ADD_FAILURE() << made.error().message;
      return {};
    }
    return std::move(*made);
  }

  // A queue pair of the domain, for posts that the fake keeps in flight.
  QueuePair make_pair() {
    if (!queue) queue = std::move(*CompletionQueue::create(context, 1024));
    UdOptions ud;
    ud.max_send = 4096;
    return std::move(*QueuePair::create_ud(domain, queue, queue, ud));
  }

  static Status post(QueuePair& pair, ibv_ah* address) {
    return pair.post_send({.address = address, .qpn = 1, .qkey = 1}, ibv_sge{}, 0, 0);
  }

  Context context;
  ProtectionDomain domain;
  CompletionQueue queue;
};

}  // namespace verbena::fake
