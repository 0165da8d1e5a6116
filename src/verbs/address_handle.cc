// Address handles, made from attributes or from a datagram that came in.
#include <new>

#include "verbs/address.h"
#include "verbs/devices.h"
#include "verbs/export.h"
#include "verbs/grh.h"
#include "verbs/neighbour.h"
#include "verbs/objects.h"
#include "verbs/query.h"
#include "verbs/real.h"
#include "verbs/refusal.h"

namespace verbena::verbs {
namespace {

constexpr const char* kV11 = "IBVERBS_1.1";
constinit Real<ibv_ah*(ibv_pd*, ibv_ah_attr*)> real_create_ah{"ibv_create_ah", kV11};
constinit Real<int(ibv_ah*)> real_destroy_ah{"ibv_destroy_ah", kV11};
constinit Real<int(ibv_context*, std::uint8_t, ibv_wc*, ibv_grh*, ibv_ah_attr*)> real_init_ah_from_wc{
    "ibv_init_ah_from_wc", kV11};
constinit Real<ibv_ah*(ibv_pd*, ibv_wc*, ibv_grh*, std::uint8_t)> real_create_ah_from_wc{"ibv_create_ah_from_wc", kV11};
constinit Real<int(ibv_context*, ibv_ah_attr*, std::uint8_t*, std::uint16_t*)> real_resolve_l2{
    "ibv_resolve_eth_l2_from_gid", kV11};

// What differs on the handle from what was asked for is written back.
ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr& attributes) {
  if (!alive(pd->context)) return null_with(device::Context::refuse_child());
  if (!names_itself(pd)) return null_with(EINVAL);
  auto machine = device::AddressHandle::create(*ours(pd).machine, to_engine(attributes));
  if (!machine) return null_with(device::report_once(machine.error()));
  auto* const ah = new VerbsAh;
  ah->machine = std::move(*machine);
  ah->domain = Hold(ours(pd).holders);
  if (ah->machine->overrides_hop_limit()) attributes.grh.hop_limit = device::kOverriddenHopLimit;
  ah->base = {.context = pd->context, .pd = pd, .handle = ah->machine->handle()};
  return &ah->base;
}

int errno_of(GrhError error) noexcept {
  switch (error) {
    case GrhError::kNone:
      return 0;
    case GrhError::kUnknownProtocol:
      return EPROTONOSUPPORT;
    case GrhError::kMulticast:
      return EINVAL;
  }
  return EINVAL;
}

// The GRH turned round: its destination is where an answer comes from. Requires: the device has the port that
// `attributes` name.
int answer_to(ibv_context* context, const ibv_grh& grh, ibv_ah_attr& attributes) noexcept {
  GrhAddress address;
  const std::span<const std::byte, kGrhSize> bytes(reinterpret_cast<const std::byte*>(&grh), kGrhSize);
  const bool infiniband = ours(context).machine->find_port(attributes.port_num)->is_infiniband();
  if (const int error = errno_of((infiniband ? read_infiniband_grh : read_grh)(bytes, address))) return error;
  const auto index = find_gid_index(context, attributes.port_num, address.local);
  if (!index) return EINVAL;
  attributes.grh.dgid = to_verbs(address.remote);
  attributes.grh.flow_label = address.flow_label;
  attributes.grh.sgid_index = *index;
  attributes.grh.hop_limit = address.hop_limit;
  attributes.grh.traffic_class = address.traffic_class;
  return 0;
}

int init_from_completion(ibv_context* context, std::uint8_t port, const ibv_wc& completion, const ibv_grh* grh,
                         ibv_ah_attr& attributes) noexcept {
  if (!alive(context)) return device::Context::refuse_child();
  if (ours(context).machine->find_port(port) == nullptr) return EINVAL;
  attributes = {};
  attributes.dlid = completion.slid;
  attributes.sl = completion.sl;
  attributes.src_path_bits = completion.dlid_path_bits;
  attributes.port_num = port;
  if ((completion.wc_flags & IBV_WC_GRH) == 0) return 0;
  attributes.is_global = 1;
  return grh == nullptr ? EINVAL : answer_to(context, *grh, attributes);
}

int resolve_l2(ibv_context* context, const ibv_ah_attr& attributes, std::uint8_t* mac, std::uint16_t* vlan) noexcept {
  if (!alive(context)) return -device::Context::refuse_child();
  const device::Port* const port = ours(context).machine->find_port(attributes.port_num);
  if (port == nullptr) return -EINVAL;
  const unsigned interface = port->copy().interface_index;
  const Gid destination = to_gid(attributes.grh.dgid);
  if (find_gid_index(context, port->number(), destination)) {
    if (const int error = own_mac(interface, mac)) return -error;
  } else if (const int error = find_neighbour(interface, destination, mac)) {
    return -error;
  }
  if (vlan != nullptr) *vlan = kNoVlan;
  return 0;
}

}  // namespace

VERBENA_EXPORT ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attributes) {
  if (!is_ours(pd)) return real_create_ah.call_or(nullptr, pd, attributes);
  return contained([=] { return create_ah(pd, *attributes); });
}

VERBENA_EXPORT int ibv_destroy_ah(ibv_ah* ah) {
  if (!is_ours(ah)) return real_destroy_ah.call_or(EOPNOTSUPP, ah);
  if (!alive(ah->context)) return device::Context::refuse_child();
  if (!names_itself(ah)) return ENOENT;
  delete &ours(ah);
  return 0;
}

VERBENA_EXPORT int ibv_init_ah_from_wc(ibv_context* context, std::uint8_t port, ibv_wc* completion, ibv_grh* grh,
                                       ibv_ah_attr* attributes) {
  if (!is_ours(context)) return real_init_ah_from_wc.call_or(-1, context, port, completion, grh, attributes);
  const int error = init_from_completion(context, port, *completion, grh, *attributes);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

VERBENA_EXPORT ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* completion, ibv_grh* grh, std::uint8_t port) {
  if (!is_ours(pd)) return real_create_ah_from_wc.call_or(nullptr, pd, completion, grh, port);
  ibv_ah_attr attributes;
  if (const int error = init_from_completion(pd->context, port, *completion, grh, attributes)) return null_with(error);
  return contained([&] { return create_ah(pd, attributes); });
}

VERBENA_EXPORT int ibv_resolve_eth_l2_from_gid(ibv_context* context, ibv_ah_attr* attributes, std::uint8_t* mac,
                                               std::uint16_t* vlan) {
  if (!is_ours(context)) return real_resolve_l2.call_or(-EOPNOTSUPP, context, attributes, mac, vlan);
  return resolve_l2(context, *attributes, mac, vlan);
}

}  // namespace verbena::verbs
