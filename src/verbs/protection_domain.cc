// Protection domains, thread domains, and the parent domains that put the two together.
#include <new>

#include "verbs/devices.h"
#include "verbs/export.h"
#include "verbs/objects.h"
#include "verbs/operations.h"
#include "verbs/real.h"
#include "verbs/refusal.h"
#include "verbs/shared_objects.h"

namespace verbena::verbs {
namespace {

constexpr const char* kV11 = "IBVERBS_1.1";
constinit Real<ibv_pd*(ibv_context*)> real_alloc_pd{"ibv_alloc_pd", kV11};
constinit Real<int(ibv_pd*)> real_dealloc_pd{"ibv_dealloc_pd", kV11};

constinit Real<ibv_pd*(ibv_context*, std::uint32_t)> real_import_pd{"ibv_import_pd", "IBVERBS_1.10"};
constinit Real<void(ibv_pd*)> real_unimport_pd{"ibv_unimport_pd", "IBVERBS_1.10"};

constexpr std::uint32_t kKnownParentMask =
    IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;

ibv_pd* wrap(ibv_context* context, std::shared_ptr<device::ProtectionDomain> machine) {
  auto pd = std::make_unique<VerbsPd>();
  pd->machine = std::move(machine);
  shared_domains().add(*ours(context).machine, pd->machine->handle(), pd->machine);
  pd->base = {.context = context, .handle = pd->machine->handle()};
  return &pd.release()->base;
}

ibv_pd* alloc_pd(ibv_context* context) {
  if (!alive(context)) return null_with(device::Context::refuse_child());
  auto machine = device::ProtectionDomain::create(*ours(context).machine);
  return machine ? wrap(context, std::move(*machine)) : null_with(machine.error());
}

ibv_pd* import_pd(ibv_context* context, std::uint32_t handle) {
  if (!alive(context)) return null_with(device::Context::refuse_child());
  auto machine = shared_domains().find(*ours(context).machine, handle);
  return machine == nullptr ? null_with(EINVAL) : wrap(context, std::move(machine));
}

ibv_td* make_thread_domain(ibv_context* context, const ibv_td_init_attr& attributes) {
  if (!alive(context)) return null_with(device::Context::refuse_child());
  if (attributes.comp_mask != 0) return null_with(EINVAL);
  auto* const td = new VerbsTd;
  td->base.context = context;
  return &td->base;
}

// Queues lie in memory of the device's own, so a program's allocators would never be called: that is refused, not
// passed over. The one value that asks for the default is taken.
int check_allocators(const ibv_parent_domain_init_attr& attributes) {
  if ((attributes.comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) == 0) return 0;
  if (attributes.alloc == nullptr && attributes.free == nullptr) return 0;
  return errno_of(failure(ErrorCode::kUnsupported,
                          "a parent domain with allocators (IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS): queues do not lie "
                          "in the program's memory here; leave the bit out",
                          EOPNOTSUPP));
}

ibv_pd* make_parent_domain(ibv_context* context, const ibv_parent_domain_init_attr& attributes) {
  if (!alive(context)) return null_with(device::Context::refuse_child());
  if ((attributes.comp_mask & ~kKnownParentMask) != 0) return null_with(EINVAL);
  ibv_pd* const under = attributes.pd;
  if (under == nullptr || under->context != context || !names_itself(under) || ours(under).is_parent) {
    return null_with(EINVAL);
  }
  if (attributes.td != nullptr && attributes.td->context != context) return null_with(EINVAL);
  if (const int error = check_allocators(attributes)) return null_with(error);
  auto* const parent = new VerbsPd;
  parent->machine = ours(under).machine;
  parent->machine->engine().enter(engine::Resident::kParentDomain);
  parent->is_parent = true;
  if (attributes.td != nullptr) parent->thread_domain = Hold(ours(attributes.td).holders);
  parent->base = {.context = context, .handle = parent->machine->handle()};
  return &parent->base;
}

int dealloc_pd(ibv_pd* pd) noexcept {
  if (!alive(pd->context)) return device::Context::refuse_child();
  if (!names_itself(pd)) return ENOENT;
  VerbsPd& mine = ours(pd);
  if (mine.holders.any() || (!mine.is_parent && mine.machine->in_use())) return EBUSY;
  if (mine.is_parent) mine.machine->engine().leave(engine::Resident::kParentDomain);
  delete &mine;
  return 0;
}

}  // namespace

ibv_td* alloc_thread_domain(ibv_context* context, ibv_td_init_attr* attributes) noexcept {
  return contained([=] { return make_thread_domain(context, *attributes); });
}

int dealloc_thread_domain(ibv_td* td) noexcept {
  if (!alive(td->context)) return device::Context::refuse_child();
  if (ours(td).holders.any()) return EBUSY;
  delete &ours(td);
  return 0;
}

ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attributes) noexcept {
  return contained([=] { return make_parent_domain(context, *attributes); });
}

VERBENA_EXPORT ibv_pd* ibv_alloc_pd(ibv_context* context) {
  if (!is_ours(context)) return real_alloc_pd.call_or(nullptr, context);
  return contained([=] { return alloc_pd(context); });
}

// The program deallocates either of the two, once nothing is left in it, and gives up the other by ibv_unimport_pd().
VERBENA_EXPORT ibv_pd* ibv_import_pd(ibv_context* context, std::uint32_t handle) {
  if (!is_ours(context)) return real_import_pd.call_or(nullptr, context, handle);
  return contained([=] { return import_pd(context, handle); });
}

VERBENA_EXPORT void ibv_unimport_pd(ibv_pd* pd) {
  if (!is_ours(pd)) return real_unimport_pd.call(pd);
  delete &ours(pd);
}

VERBENA_EXPORT int ibv_dealloc_pd(ibv_pd* pd) {
  return is_ours(pd) ? dealloc_pd(pd) : real_dealloc_pd.call_or(EOPNOTSUPP, pd);
}

}  // namespace verbena::verbs
