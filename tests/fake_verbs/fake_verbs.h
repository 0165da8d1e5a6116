// A verbs library for tests: the calls that the middleware uses, over a device whose every answer a test decides.
//
// Linked into a test program it stands before libibverbs. What a program does wrong, it counts instead of crashing: an
// address handle destroyed while a posted work request names it, used after it was destroyed, destroyed twice, or used
// with a queue pair of another domain, and a context asked after it was closed, or by way of a domain that is gone.
// Destroyed address handles stay readable until reset(), so that it can tell.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "verbena/gid.h"

namespace verbena::fake {

struct GidPlace {
  Gid gid;
  std::uint32_t type = IBV_GID_TYPE_ROCE_V2;
  std::uint32_t netdev = 0;
};

struct Port {
  ibv_port_state state = IBV_PORT_ACTIVE;
  ibv_mtu active_mtu = IBV_MTU_1024;
  std::uint8_t link_layer = IBV_LINK_LAYER_ETHERNET;
  std::uint16_t lid = 0;
  std::uint8_t lmc = 0;
  std::uint8_t flags = 0;
  std::uint8_t active_width = 0;
  std::uint8_t active_speed = 0;
  std::vector<GidPlace> gids;  // by index; a zero GID is a hole
};

struct Violations {
  std::uint64_t destroyed_in_flight = 0;
  std::uint64_t used_after_destroy = 0;
  std::uint64_t destroyed_twice = 0;
  std::uint64_t wrong_domain = 0;
  std::uint64_t asked_after_close = 0;

  std::uint64_t sum() const {
    return destroyed_in_flight + used_after_destroy + destroyed_twice + wrong_domain + asked_after_close;
  }
};

struct Live {
  std::uint64_t contexts = 0;
  std::uint64_t domains = 0;
  std::uint64_t addresses = 0;
  std::uint64_t queues = 0;
  std::uint64_t channels = 0;
  std::uint64_t pairs = 0;
  std::uint64_t regions = 0;

  std::uint64_t sum() const { return contexts + domains + addresses + queues + channels + pairs + regions; }
};

// What to answer instead of doing it: an errno, or 0 to go on. May block: no lock of the fake is held meanwhile.
using CreateHook = std::function<int(const ibv_ah_attr&)>;

// Forgets everything. Requires: no object of an earlier test is in use.
void reset();

// Devices are listed in the order added. Port 1 is ports[0].
void add_device(const std::string& name, std::vector<Port> ports = {Port{}});

// All below: the device must exist. Any thread.
void set_port(const std::string& device, std::uint8_t port, const Port& value);
void set_gids(const std::string& device, std::uint8_t port, std::vector<GidPlace> gids);
void set_max_ah(const std::string& device, int max_ah);  // advertised, and ENOMEM above it
void set_advertised_max_ah(const std::string& device, int max_ah);
void set_create_hook(CreateHook hook);
// What the device makes of the attributes that it accepts: it writes to the caller's.
void set_change_hook(std::function<void(ibv_ah_attr&)> hook);
// errno of the named call ("ibv_alloc_pd"); 0 makes it work again.
void fail_call(const std::string& call, int error);
// Into the event stream of every open context of the device.
void raise_event(const std::string& device, ibv_event_type type, std::uint8_t port = 1);

std::uint64_t creations();     // ibv_create_ah that succeeded
std::uint64_t attempts();      // ibv_create_ah called
std::uint64_t destructions();  // ibv_destroy_ah that succeeded
std::uint64_t table_reads();   // ibv_query_gid_table called
Violations violations();
Live live();
// As given to ibv_create_ah; works for destroyed ones too.
ibv_ah_attr attributes_of(const ibv_ah* address);
bool is_destroyed(const ibv_ah* address);

// Completes the oldest `count` sends of a queue pair: frees their addresses, and puts a completion on the send queue
// for each that was signaled. Returns how many there were.
std::size_t complete_sends(ibv_qp* pair, std::size_t count, ibv_wc_status status = IBV_WC_SUCCESS);
std::size_t posted_sends(const ibv_qp* pair);
std::size_t posted_receives(const ibv_qp* pair);
// A completion out of nowhere, with an event where the queue is armed.
void push_completion(ibv_cq* queue, const ibv_wc& completion);
// Called by ibv_req_notify_cq before it arms: where a completion may fall between a poll and the arming.
void set_arm_hook(std::function<void(ibv_cq*)> hook);
// Called by ibv_query_gid_table when it has read: where a change may fall between the reading and its use. May block:
// no lock of the fake is held meanwhile.
void set_table_hook(std::function<void()> hook);

}  // namespace verbena::fake
