// What a test says to the fake, and asks of it.
#include "fake_verbs/fake_verbs.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <unistd.h>

#include "fake_verbs/fake_state.h"

namespace verbena::fake {

State& state() {
  static State* const instance = new State;
  return *instance;
}

Device& device_named(const std::string& name) {
  for (const std::unique_ptr<Device>& device : state().devices) {
    if (name == device->raw.name) return *device;
  }
  std::fprintf(stderr, "fake_verbs: no device %s\n", name.c_str());
  std::abort();
}

int failure_of(const std::string& call) {
  const auto found = state().failing.find(call);
  return found == state().failing.end() ? 0 : found->second;
}

bool is_open(ibv_context* raw) {
  if (!reinterpret_cast<Context*>(raw)->closed) return true;
  ++state().violations.asked_after_close;
  return false;
}

ibv_context* no_context() {
  static Device* const device = new Device;
  static Context* const context = new Context;
  context->closed = true;
  context->device = device;
  context->raw.device = &device->raw;
  context->raw.async_fd = -1;
  return &context->raw;
}

void add_completion(Queue& queue, const ibv_wc& completion) {
  queue.completions.push_back(completion);
  if (!queue.armed || queue.raw.channel == nullptr) return;
  queue.armed = false;
  auto* channel = reinterpret_cast<Channel*>(queue.raw.channel);
  ibv_cq* raw = &queue.raw;
  if (::write(channel->write_fd, &raw, sizeof raw) != sizeof raw) std::abort();
}

void reset() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.devices.clear();
  s.addresses.clear();
  s.domains.clear();
  s.contexts.clear();
  s.closed.clear();
  s.create_hook = {};
  s.change_hook = {};
  s.arm_hook = {};
  s.table_hook = {};
  s.failing.clear();
  s.creations = s.attempts = s.destructions = s.table_reads = 0;
  s.violations = {};
  s.live = {};
}

void add_device(const std::string& name, std::vector<Port> ports) {
  auto device = std::make_unique<Device>();
  std::strncpy(device->raw.name, name.c_str(), sizeof device->raw.name - 1);
  device->raw.node_type = IBV_NODE_CA;
  device->raw.transport_type = IBV_TRANSPORT_IB;
  device->ports = std::move(ports);
  const std::lock_guard lock(state().mutex);
  state().devices.push_back(std::move(device));
}

void set_port(const std::string& device, std::uint8_t port, const Port& value) {
  const std::lock_guard lock(state().mutex);
  device_named(device).ports.at(port - 1U) = value;
}

void set_gids(const std::string& device, std::uint8_t port, std::vector<GidPlace> gids) {
  const std::lock_guard lock(state().mutex);
  device_named(device).ports.at(port - 1U).gids = std::move(gids);
}

void set_max_ah(const std::string& device, int max_ah) {
  const std::lock_guard lock(state().mutex);
  device_named(device).max_ah = device_named(device).advertised_max_ah = max_ah;
}

void set_advertised_max_ah(const std::string& device, int max_ah) {
  const std::lock_guard lock(state().mutex);
  device_named(device).advertised_max_ah = max_ah;
}

void set_change_hook(std::function<void(ibv_ah_attr&)> hook) {
  const std::lock_guard lock(state().mutex);
  state().change_hook = std::move(hook);
}

void set_create_hook(CreateHook hook) {
  const std::lock_guard lock(state().mutex);
  state().create_hook = std::move(hook);
}

void set_arm_hook(std::function<void(ibv_cq*)> hook) {
  const std::lock_guard lock(state().mutex);
  state().arm_hook = std::move(hook);
}

void set_table_hook(std::function<void()> hook) {
  const std::lock_guard lock(state().mutex);
  state().table_hook = std::move(hook);
}

void fail_call(const std::string& call, int error) {
  const std::lock_guard lock(state().mutex);
  state().failing[call] = error;
}

void raise_event(const std::string& device, ibv_event_type type, std::uint8_t port) {
  const std::lock_guard lock(state().mutex);
  ibv_async_event event{};
  event.event_type = type;
  event.element.port_num = port;
  for (Context* context : state().contexts) {
    if (context->device != &device_named(device)) continue;
    if (::write(context->event_write_fd, &event, sizeof event) != sizeof event) std::abort();
  }
}

std::uint64_t creations() {
  const std::lock_guard lock(state().mutex);
  return state().creations;
}

std::uint64_t attempts() {
  const std::lock_guard lock(state().mutex);
  return state().attempts;
}

std::uint64_t destructions() {
  const std::lock_guard lock(state().mutex);
  return state().destructions;
}

std::uint64_t table_reads() {
  const std::lock_guard lock(state().mutex);
  return state().table_reads;
}

Violations violations() {
  const std::lock_guard lock(state().mutex);
  return state().violations;
}

Live live() {
  const std::lock_guard lock(state().mutex);
  return state().live;
}

ibv_ah_attr attributes_of(const ibv_ah* address) {
  const std::lock_guard lock(state().mutex);
  return reinterpret_cast<const Address*>(address)->attributes;
}

bool is_destroyed(const ibv_ah* address) {
  const std::lock_guard lock(state().mutex);
  return reinterpret_cast<const Address*>(address)->destroyed;
}

std::size_t complete_sends(ibv_qp* pair, std::size_t count, ibv_wc_status status) {
  const std::lock_guard lock(state().mutex);
  auto* fake = reinterpret_cast<Pair*>(pair);
  std::size_t done = 0;
  for (; done < count && !fake->sends.empty(); ++done) {
    const Send send = fake->sends.front();
    fake->sends.pop_front();
    --send.address->in_flight;
    if (!send.signaled && status == IBV_WC_SUCCESS) continue;
    ibv_wc completion{};
    completion.wr_id = send.wr_id;
    completion.status = status;
    completion.opcode = IBV_WC_SEND;
    completion.qp_num = pair->qp_num;
    add_completion(*reinterpret_cast<Queue*>(pair->send_cq), completion);
  }
  return done;
}

std::size_t posted_sends(const ibv_qp* pair) {
  const std::lock_guard lock(state().mutex);
  return reinterpret_cast<const Pair*>(pair)->sends.size();
}

std::size_t posted_receives(const ibv_qp* pair) {
  const std::lock_guard lock(state().mutex);
  return reinterpret_cast<const Pair*>(pair)->receives.size();
}

void push_completion(ibv_cq* queue, const ibv_wc& completion) {
  const std::lock_guard lock(state().mutex);
  add_completion(*reinterpret_cast<Queue*>(queue), completion);
}

}  // namespace verbena::fake
