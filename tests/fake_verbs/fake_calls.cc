// The verbs calls themselves. Conventions as rdma-core's: creators return NULL and set errno, the others an errno.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "fake_verbs/fake_state.h"

#undef ibv_query_port
#undef ibv_reg_mr

namespace verbena::fake {
namespace {

Context* of(ibv_context* raw) {
  return reinterpret_cast<Context*>(raw);
}
Domain* of(ibv_pd* raw) {
  return reinterpret_cast<Domain*>(raw);
}
Address* of(ibv_ah* raw) {
  return reinterpret_cast<Address*>(raw);
}
Queue* of(ibv_cq* raw) {
  return reinterpret_cast<Queue*>(raw);
}
Channel* of(ibv_comp_channel* raw) {
  return reinterpret_cast<Channel*>(raw);
}
Pair* of(ibv_qp* raw) {
  return reinterpret_cast<Pair*>(raw);
}

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
  return ends;
}

int poll_cq(ibv_cq* raw, int wanted, ibv_wc* out) {
  const std::lock_guard lock(state().mutex);
  Queue* queue = of(raw);
  int got = 0;
  for (; got < wanted && !queue->completions.empty(); ++got) {
    out[got] = queue->completions.front();
    queue->completions.pop_front();
  }
  return got;
}

int req_notify_cq(ibv_cq* raw, int) {
  std::function<void(ibv_cq*)> hook;
  {
    const std::lock_guard lock(state().mutex);
    if (const int error = failure_of("ibv_req_notify_cq"); error != 0) return error;
    hook = state().arm_hook;
  }
  if (hook) hook(raw);
  const std::lock_guard lock(state().mutex);
  of(raw)->armed = true;
  return 0;
}

int post_one_send(Pair& pair, const ibv_send_wr& request) {
  if (const int error = failure_of("ibv_post_send"); error != 0) return error;
  if (pair.raw.state != IBV_QPS_RTS) return EINVAL;
  if (pair.sends.size() >= pair.max_send) return ENOMEM;
  Address* address = of(request.wr.ud.ah);
  if (address->destroyed) {
    ++state().violations.used_after_destroy;
    return EINVAL;
  }
  if (address->raw.pd != pair.raw.pd) ++state().violations.wrong_domain;
  ++address->in_flight;
  pair.sends.push_back({.wr_id = request.wr_id,
                        .address = address,
                        .signaled = pair.signal_all || (request.send_flags & IBV_SEND_SIGNALED) != 0});
  return 0;
}

int post_send(ibv_qp* raw, ibv_send_wr* request, ibv_send_wr** refused) {
  const std::lock_guard lock(state().mutex);
  for (; request != nullptr; request = request->next) {
    if (const int error = post_one_send(*of(raw), *request); error != 0) {
      *refused = request;
      return error;
    }
  }
  return 0;
}

int post_recv(ibv_qp* raw, ibv_recv_wr* request, ibv_recv_wr** refused) {
  const std::lock_guard lock(state().mutex);
  for (; request != nullptr; request = request->next) {
    if (of(raw)->receives.size() >= of(raw)->max_receive) {
      *refused = request;
      return ENOMEM;
    }
    of(raw)->receives.push_back(request->wr_id);
  }
  return 0;
}

// Requires: the mutex.
int check_address(const Context& context, const ibv_ah_attr& attributes) {
  if (attributes.port_num == 0 || attributes.port_num > context.device->ports.size()) return EINVAL;
  const Port& port = context.device->ports[attributes.port_num - 1U];
  if (port.link_layer == IBV_LINK_LAYER_ETHERNET && attributes.is_global == 0) return EINVAL;
  if (attributes.is_global != 0) {
    if (attributes.grh.sgid_index >= port.gids.size()) return EINVAL;
    if (port.gids[attributes.grh.sgid_index].gid.is_zero()) return EINVAL;
  }
  if (state().live.addresses >= static_cast<std::uint64_t>(context.device->max_ah)) return ENOMEM;
  return 0;
}

}  // namespace
}  // namespace verbena::fake

using namespace verbena::fake;

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  const std::lock_guard lock(state().mutex);
  if (const int error = failure_of("ibv_get_device_list"); error != 0) {
    errno = error;
    return nullptr;
  }
  auto** list = new ibv_device* [state().devices.size() + 1] {};
  std::size_t at = 0;
  for (const std::unique_ptr<Device>& device : state().devices) list[at++] = &device->raw;
  if (count != nullptr) *count = static_cast<int>(at);
  return list;
}

void ibv_free_device_list(ibv_device** list) {
  delete[] list;
}

const char* ibv_get_device_name(ibv_device* device) {
  return device->name;
}

ibv_context* ibv_open_device(ibv_device* device) {
  const std::lock_guard lock(state().mutex);
  if (const int error = failure_of("ibv_open_device"); error != 0) {
    errno = error;
    return nullptr;
  }
  auto* context = new Context;
  const std::array<int, 2> ends = make_pipe();
  context->device = reinterpret_cast<Device*>(device);
  context->event_write_fd = ends[1];
  context->raw.device = device;
  context->raw.async_fd = ends[0];
  context->raw.cmd_fd = -1;
  context->raw.num_comp_vectors = 1;
  context->raw.ops.poll_cq = poll_cq;
  context->raw.ops.req_notify_cq = req_notify_cq;
  context->raw.ops.post_send = post_send;
  context->raw.ops.post_recv = post_recv;
  state().contexts.insert(context);
  ++state().live.contexts;
  return &context->raw;
}

int ibv_close_device(ibv_context* raw) {
  const std::lock_guard lock(state().mutex);
  Context* context = of(raw);
  ::close(raw->async_fd);
  ::close(context->event_write_fd);
  state().contexts.erase(context);
  state().closed.emplace_back(context)->closed = true;
  --state().live.contexts;
  return 0;
}

int ibv_query_device(ibv_context* raw, ibv_device_attr* attributes) {
  const std::lock_guard lock(state().mutex);
  if (!is_open(raw)) return EINVAL;
  if (const int error = failure_of("ibv_query_device"); error != 0) return error;
  *attributes = {};
  attributes->phys_port_cnt = static_cast<std::uint8_t>(of(raw)->device->ports.size());
  attributes->max_ah = of(raw)->device->advertised_max_ah;
  attributes->max_cqe = 1 << 16;
  return 0;
}

int ibv_query_port(ibv_context* raw, std::uint8_t number, _compat_ibv_port_attr* compat) {
  const std::lock_guard lock(state().mutex);
  if (!is_open(raw)) return EINVAL;
  if (const int error = failure_of("ibv_query_port"); error != 0) return error;
  if (number == 0 || number > of(raw)->device->ports.size()) return EINVAL;
  const Port& port = of(raw)->device->ports[number - 1U];
  auto* attributes = reinterpret_cast<ibv_port_attr*>(compat);
  attributes->state = port.state;
  attributes->max_mtu = IBV_MTU_4096;
  attributes->active_mtu = port.active_mtu;
  attributes->gid_tbl_len = 256;
  attributes->pkey_tbl_len = 1;
  attributes->lid = port.lid;
  attributes->lmc = port.lmc;
  attributes->link_layer = port.link_layer;
  attributes->flags = port.flags;
  attributes->active_width = port.active_width;
  attributes->active_speed = port.active_speed;
  return 0;
}

const char* ibv_port_state_str(enum ibv_port_state port_state) {
  return port_state == IBV_PORT_ACTIVE ? "PORT_ACTIVE" : "PORT_DOWN";
}

ssize_t _ibv_query_gid_table(ibv_context* raw, ibv_gid_entry* entries, size_t max_entries, uint32_t, size_t) {
  std::unique_lock lock(state().mutex);
  ++state().table_reads;
  if (!is_open(raw)) return -EINVAL;
  if (const int error = failure_of("ibv_query_gid_table"); error != 0) return -error;
  std::size_t count = 0;
  const std::vector<Port>& ports = of(raw)->device->ports;
  for (std::size_t port = 0; port < ports.size(); ++port) {
    for (std::size_t index = 0; index < ports[port].gids.size() && count < max_entries; ++index) {
      const GidPlace& place = ports[port].gids[index];
      if (place.gid.is_zero()) continue;
      ibv_gid_entry& entry = entries[count++];
      std::memcpy(entry.gid.raw, place.gid.bytes.data(), place.gid.bytes.size());
      entry.gid_index = static_cast<std::uint32_t>(index);
      entry.port_num = static_cast<std::uint32_t>(port + 1);
      entry.gid_type = place.type;
      entry.ndev_ifindex = place.netdev;
    }
  }
  const std::function<void()> hook = state().table_hook;
  lock.unlock();
  if (hook) hook();
  lock.lock();
  return is_open(raw) ? static_cast<ssize_t>(count) : -EINVAL;
}

int ibv_get_async_event(ibv_context* raw, ibv_async_event* event) {
  if (::read(raw->async_fd, event, sizeof *event) != sizeof *event) return -1;
  const std::lock_guard lock(state().mutex);
  ++of(raw)->unacknowledged;
  return 0;
}

void ibv_ack_async_event(ibv_async_event*) {}

ibv_pd* ibv_alloc_pd(ibv_context* raw) {
  const std::lock_guard lock(state().mutex);
  if (const int error = failure_of("ibv_alloc_pd"); error != 0) {
    errno = error;
    return nullptr;
  }
  Domain* domain = state().domains.emplace_back(std::make_unique<Domain>()).get();
  domain->raw.context = raw;
  ++state().live.domains;
  return &domain->raw;
}

int ibv_dealloc_pd(ibv_pd* raw) {
  const std::lock_guard lock(state().mutex);
  if (of(raw)->users != 0) return EBUSY;
  raw->context = no_context();
  --state().live.domains;
  return 0;
}

ibv_ah* ibv_create_ah(ibv_pd* raw, ibv_ah_attr* attributes) {
  CreateHook hook;
  std::function<void(ibv_ah_attr&)> change;
  {
    const std::lock_guard lock(state().mutex);
    ++state().attempts;
    hook = state().create_hook;
    change = state().change_hook;
  }
  int error = hook ? hook(*attributes) : 0;
  const std::lock_guard lock(state().mutex);
  if (error == 0) error = check_address(*of(raw->context), *attributes);
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  if (change) change(*attributes);
  state().addresses.push_back(std::make_unique<Address>());
  Address* address = state().addresses.back().get();
  address->raw.context = raw->context;
  address->raw.pd = raw;
  address->attributes = *attributes;
  ++of(raw)->users;
  ++state().live.addresses;
  ++state().creations;
  return &address->raw;
}

int ibv_destroy_ah(ibv_ah* raw) {
  const std::lock_guard lock(state().mutex);
  if (const int error = failure_of("ibv_destroy_ah"); error != 0) return error;
  if (of(raw)->destroyed) {
    ++state().violations.destroyed_twice;
    return EINVAL;
  }
  if (of(raw)->in_flight != 0) ++state().violations.destroyed_in_flight;
  of(raw)->destroyed = true;
  --of(raw->pd)->users;
  --state().live.addresses;
  ++state().destructions;
  return 0;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* raw) {
  const std::lock_guard lock(state().mutex);
  if (const int error = failure_of("ibv_create_comp_channel"); error != 0) {
    errno = error;
    return nullptr;
  }
  auto* channel = new Channel;
  const std::array<int, 2> ends = make_pipe();
  channel->raw.context = raw;
  channel->raw.fd = ends[0];
  channel->write_fd = ends[1];
  ++state().live.channels;
  return &channel->raw;
}

int ibv_destroy_comp_channel(ibv_comp_channel* raw) {
  const std::lock_guard lock(state().mutex);
  if (of(raw)->users != 0) return EBUSY;
  ::close(raw->fd);
  ::close(of(raw)->write_fd);
  --state().live.channels;
  delete of(raw);
  return 0;
}

ibv_cq* ibv_create_cq(ibv_context* raw, int depth, void* cq_context, ibv_comp_channel* channel, int) {
  const std::lock_guard lock(state().mutex);
  if (const int error = failure_of("ibv_create_cq"); error != 0) {
    errno = error;
    return nullptr;
  }
  auto* queue = new Queue;
  queue->raw.context = raw;
  queue->raw.channel = channel;
  queue->raw.cq_context = cq_context;
  queue->raw.cqe = depth;
  if (channel != nullptr) ++of(channel)->users;
  ++state().live.queues;
  return &queue->raw;
}

// A queue with unacknowledged events would make the real call wait for ever: here it is EBUSY.
int ibv_destroy_cq(ibv_cq* raw) {
  const std::lock_guard lock(state().mutex);
  if (of(raw)->users != 0 || of(raw)->unacknowledged != 0) return EBUSY;
  if (raw->channel != nullptr) --of(raw->channel)->users;
  --state().live.queues;
  delete of(raw);
  return 0;
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void** cq_context) {
  if (::read(channel->fd, queue, sizeof *queue) != sizeof *queue) return -1;
  const std::lock_guard lock(state().mutex);
  ++of(*queue)->unacknowledged;
  *cq_context = (*queue)->cq_context;
  return 0;
}

void ibv_ack_cq_events(ibv_cq* raw, unsigned count) {
  const std::lock_guard lock(state().mutex);
  of(raw)->unacknowledged -= count;
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* raw, void* address, size_t length, uint64_t, unsigned) {
  const std::lock_guard lock(state().mutex);
  if (const int error = failure_of("ibv_reg_mr"); error != 0) {
    errno = error;
    return nullptr;
  }
  auto* region = new Region;
  region->raw.context = raw->context;
  region->raw.pd = raw;
  region->raw.addr = address;
  region->raw.length = length;
  region->raw.lkey = region->raw.rkey = 0x1234;
  ++of(raw)->users;
  ++state().live.regions;
  return &region->raw;
}

ibv_mr* ibv_reg_mr(ibv_pd* raw, void* address, size_t length, int access) {
  return ibv_reg_mr_iova2(raw, address, length, 0, static_cast<unsigned>(access));
}

int ibv_dereg_mr(ibv_mr* raw) {
  const std::lock_guard lock(state().mutex);
  --of(raw->pd)->users;
  --state().live.regions;
  delete reinterpret_cast<Region*>(raw);
  return 0;
}

ibv_qp* ibv_create_qp(ibv_pd* raw, ibv_qp_init_attr* initial) {
  const std::lock_guard lock(state().mutex);
  if (const int error = failure_of("ibv_create_qp"); error != 0) {
    errno = error;
    return nullptr;
  }
  auto* pair = new Pair;
  pair->raw.context = raw->context;
  pair->raw.pd = raw;
  pair->raw.send_cq = initial->send_cq;
  pair->raw.recv_cq = initial->recv_cq;
  pair->raw.qp_num = state().next_qpn++;
  pair->raw.state = IBV_QPS_RESET;
  pair->raw.qp_type = initial->qp_type;
  pair->signal_all = initial->sq_sig_all != 0;
  pair->max_send = initial->cap.max_send_wr;
  pair->max_receive = initial->cap.max_recv_wr;
  ++of(raw)->users;
  ++of(initial->send_cq)->users;
  ++of(initial->recv_cq)->users;
  ++state().live.pairs;
  return &pair->raw;
}

int ibv_modify_qp(ibv_qp* raw, ibv_qp_attr* attributes, int mask) {
  const std::lock_guard lock(state().mutex);
  if (const int error = failure_of("ibv_modify_qp"); error != 0) return error;
  if ((mask & IBV_QP_STATE) != 0) raw->state = attributes->qp_state;
  return 0;
}

int ibv_destroy_qp(ibv_qp* raw) {
  const std::lock_guard lock(state().mutex);
  if (const int error = failure_of("ibv_destroy_qp"); error != 0) return error;
  Pair* pair = of(raw);
  for (const Send& send : pair->sends) --send.address->in_flight;
  --of(raw->pd)->users;
  --of(raw->send_cq)->users;
  --of(raw->recv_cq)->users;
  --state().live.pairs;
  delete pair;
  return 0;
}

}  // extern "C"
