// Flow steering: which frames a raw packet queue pair gets.
#include "device/flow.h"

#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>

#include "verbs/flow_attributes.h"
#include "verbs/objects.h"
#include "verbs/operations.h"
#include "verbs/refusal.h"

namespace verbena::verbs {
namespace {

ibv_flow* make(ibv_qp* qp, const ibv_flow_attr& attributes) {
  const auto& queue_pair = ours(qp).machine;
  if (const Status fits = device::Flow::check(*queue_pair); !fits) return null_with(fits.error());
  const auto rule = parse_flow({reinterpret_cast<const std::byte*>(&attributes), size_of_flow(attributes)});
  if (!rule) return null_with(rule.error());
  auto flow = std::make_unique<VerbsFlow>();
  auto machine = device::Flow::create(queue_pair, *rule);
  if (!machine) return null_with(machine.error());
  flow->machine = std::move(*machine);
  flow->base.context = qp->context;
  flow->base.handle = flow->machine->handle();
  return &flow.release()->base;
}

}  // namespace

ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attributes) noexcept {
  if (!alive(qp->context)) return null_with(device::Context::refuse_child());
  if (!names_itself(qp) || attributes == nullptr) return null_with(EINVAL);
  return contained([=] { return make(qp, *attributes); });
}

int destroy_flow(ibv_flow* flow) noexcept {
  if (!alive(flow->context)) return device::Context::refuse_child();
  if (!names_itself(flow)) return ENOENT;
  delete &ours(flow);
  return 0;
}

}  // namespace verbena::verbs
