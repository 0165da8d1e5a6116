// The objects behind the fake's handles. One mutex guards them all; it is never held while a hook runs.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "fake_verbs/fake_verbs.h"

namespace verbena::fake {

struct Device {
  ibv_device raw{};
  std::vector<Port> ports;
  int max_ah = 1 << 20;
  int advertised_max_ah = 1 << 20;
};

struct Context {
  ibv_context raw{};
  Device* device = nullptr;
  int event_write_fd = -1;  // the other end of raw.async_fd
  std::uint64_t unacknowledged = 0;
  bool closed = false;
};

struct Domain {
  ibv_pd raw{};
  std::uint64_t users = 0;  // what would make ibv_dealloc_pd say EBUSY
};

struct Address {
  ibv_ah raw{};
  ibv_ah_attr attributes{};
  bool destroyed = false;
  std::uint64_t in_flight = 0;  // posted and not completed sends that name it
};

struct Channel {
  ibv_comp_channel raw{};
  int write_fd = -1;
  std::uint64_t users = 0;
};

struct Queue {
  ibv_cq raw{};
  std::deque<ibv_wc> completions;
  bool armed = false;
  unsigned unacknowledged = 0;
  std::uint64_t users = 0;
};

struct Send {
  std::uint64_t wr_id = 0;
  Address* address = nullptr;
  bool signaled = false;
};

struct Pair {
  ibv_qp raw{};
  bool signal_all = false;
  std::deque<Send> sends;
  std::deque<std::uint64_t> receives;
  std::uint32_t max_send = 0;
  std::uint32_t max_receive = 0;
};

struct Region {
  ibv_mr raw{};
};

struct State {
  std::mutex mutex;
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<std::unique_ptr<Address>> addresses;  // destroyed ones too
  std::vector<std::unique_ptr<Domain>> domains;     // as well: a test may leave one behind on purpose
  std::set<Context*> contexts;                      // open ones
  std::vector<std::unique_ptr<Context>> closed;     // until reset()
  CreateHook create_hook;
  std::function<void(ibv_ah_attr&)> change_hook;
  std::function<void(ibv_cq*)> arm_hook;
  std::function<void()> table_hook;
  std::map<std::string, int> failing;
  std::uint64_t creations = 0;
  std::uint64_t attempts = 0;
  std::uint64_t destructions = 0;
  std::uint64_t table_reads = 0;
  std::uint32_t next_qpn = 0x11;
  Violations violations;
  Live live;
};

State& state();

// Guarded by state().mutex:
Device& device_named(const std::string& name);
// The errno the named call must give, else 0.
int failure_of(const std::string& call);
// False where the context was closed: counted.
bool is_open(ibv_context* raw);
// What a domain that is gone is of: a context that was never open.
ibv_context* no_context();
void add_completion(Queue& queue, const ibv_wc& completion);

}  // namespace verbena::fake
