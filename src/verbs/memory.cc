// Memory regions.
#include <new>

#include "device/demand_paging.h"
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
constinit Real<ibv_mr*(ibv_pd*, void*, std::size_t, int)> real_reg_mr{"ibv_reg_mr", kV11};
constinit Real<ibv_mr*(ibv_pd*, void*, std::size_t, std::uint64_t, int)> real_reg_mr_iova{"ibv_reg_mr_iova",
                                                                                          "IBVERBS_1.7"};
constinit Real<ibv_mr*(ibv_pd*, void*, std::size_t, std::uint64_t, unsigned)> real_reg_mr_iova2{"ibv_reg_mr_iova2",
                                                                                                "IBVERBS_1.8"};
constinit Real<ibv_mr*(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int)> real_reg_dmabuf_mr{
    "ibv_reg_dmabuf_mr", "IBVERBS_1.12"};
constinit Real<int(ibv_mr*, int, ibv_pd*, void*, std::size_t, int)> real_rereg_mr{"ibv_rereg_mr", kV11};
constinit Real<int(ibv_mr*)> real_dereg_mr{"ibv_dereg_mr", kV11};

constinit Real<ibv_mr*(ibv_pd*, std::uint32_t)> real_import_mr{"ibv_import_mr", "IBVERBS_1.10"};
constinit Real<void(ibv_mr*)> real_unimport_mr{"ibv_unimport_mr", "IBVERBS_1.10"};

constexpr unsigned kChangeTranslation = IBV_REREG_MR_CHANGE_TRANSLATION;
constexpr unsigned kChangePd = IBV_REREG_MR_CHANGE_PD;
constexpr unsigned kChangeAccess = IBV_REREG_MR_CHANGE_ACCESS;

// What a region is to become.
struct Wanted {
  ibv_pd* pd;
  void* address;
  std::size_t length;
  std::uint64_t iova;
  unsigned access;
};

int register_region(VerbsMr& mr, const Wanted& wanted) {
  if (!alive(wanted.pd->context)) return device::Context::refuse_child();
  if (!names_itself(wanted.pd)) return EINVAL;
  // A zero-based region is addressed from its first byte, whatever was passed for it.
  const std::uint64_t iova = (wanted.access & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : wanted.iova;
  auto made = device::MemoryRegion::create(*ours(wanted.pd).machine, reinterpret_cast<std::uint64_t>(wanted.address),
                                           wanted.length, iova, wanted.access, mr.machine.get());
  if (!made) return device::report(made.error());
  mr.machine = std::move(*made);
  shared_regions().add(*ours(wanted.pd->context).machine, mr.machine->handle(), mr.machine);
  mr.domain = Hold(ours(wanted.pd).holders);
  mr.iova = wanted.iova;
  mr.access = wanted.access;
  mr.base = {.context = wanted.pd->context,
             .pd = wanted.pd,
             .addr = wanted.address,
             .length = wanted.length,
             .handle = mr.machine->handle(),
             .lkey = mr.machine->key(),
             .rkey = mr.machine->key()};
  return 0;
}

ibv_mr* make_region(const Wanted& wanted) noexcept {
  return contained([&]() -> ibv_mr* {
    auto mr = std::make_unique<VerbsMr>();
    if (const int error = register_region(*mr, wanted)) return null_with(error);
    return &mr.release()->base;
  });
}

// A region that has no address of the program's.
ibv_mr* wrap_region(ibv_pd* pd, std::shared_ptr<device::MemoryRegion> machine, std::size_t length) {
  auto mr = std::make_unique<VerbsMr>();
  mr->machine = std::move(machine);
  shared_regions().add(*ours(pd->context).machine, mr->machine->handle(), mr->machine);
  mr->domain = Hold(ours(pd).holders);
  mr->base = {.context = pd->context,
              .pd = pd,
              .addr = nullptr,
              .length = length,
              .handle = mr->machine->handle(),
              .lkey = mr->machine->key(),
              .rkey = mr->machine->key()};
  return &mr.release()->base;
}

ibv_mr* make_device_region(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length, unsigned access) {
  if (!alive(pd->context)) return null_with(device::Context::refuse_child());
  if (!names_itself(pd) || !usable_in(dm, pd->context)) return null_with(EINVAL);
  auto made = device::MemoryRegion::create_in(*ours(pd).machine, ours(dm).machine, offset, length, access);
  if (!made) return null_with(made.error());
  ibv_mr* const mr = wrap_region(pd, std::move(*made), length);
  ours(mr).memory = Hold(ours(dm).holders);
  return mr;
}

ibv_mr* make_null_region(ibv_pd* pd) {
  if (!alive(pd->context)) return null_with(device::Context::refuse_child());
  if (!names_itself(pd)) return null_with(EINVAL);
  auto made = device::MemoryRegion::create_null(*ours(pd).machine);
  if (!made) return null_with(made.error());
  ibv_mr* const mr = wrap_region(pd, std::move(*made), SIZE_MAX);
  mr->rkey = 0;  // nobody else may use it
  return mr;
}

ibv_mr* import_region(ibv_pd* pd, std::uint32_t handle) {
  if (!alive(pd->context)) return null_with(device::Context::refuse_child());
  auto machine = shared_regions().find(*ours(pd->context).machine, handle);
  if (machine == nullptr || &machine->domain() != ours(pd).machine.get()) return null_with(EINVAL);
  const std::size_t length = machine->length();
  return wrap_region(pd, std::move(machine), length);
}

device::Prefetch to_prefetch(ibv_advise_mr_advice advice) noexcept {
  return advice == IBV_ADVISE_MR_ADVICE_PREFETCH         ? device::Prefetch::kRead
         : advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE ? device::Prefetch::kWrite
                                                         : device::Prefetch::kPresentOnly;
}

// A new region in the place of the old one, under the same keys. Where it cannot be had, the old one stays as it was.
int replace_region(VerbsMr& mr, unsigned flags, ibv_pd* pd, void* address, std::size_t length, int access) {
  if (flags == 0 || (flags & ~static_cast<unsigned>(IBV_REREG_MR_FLAGS_SUPPORTED)) != 0) return EINVAL;
  if ((flags & kChangePd) != 0 && (pd == nullptr || pd->context != mr.base.context)) return EINVAL;
  if ((flags & kChangeTranslation) != 0 && (address == nullptr || length == 0)) return EINVAL;
  if (!names_itself(&mr.base) || !mr.machine->is_plain()) return EINVAL;
  Wanted wanted{mr.base.pd, mr.base.addr, mr.base.length, mr.iova, mr.access};
  if ((flags & kChangePd) != 0) wanted.pd = pd;
  if ((flags & kChangeAccess) != 0) wanted.access = static_cast<unsigned>(access);
  if ((flags & kChangeTranslation) != 0) {
    wanted.address = address;
    wanted.length = length;
    wanted.iova = reinterpret_cast<std::uint64_t>(address);
  }
  return register_region(mr, wanted);
}

}  // namespace

ibv_mr* alloc_null_mr(ibv_pd* pd) noexcept {
  return contained([=] { return make_null_region(pd); });
}

ibv_mr* reg_dm_mr(ibv_pd* pd, ibv_dm* dm, std::uint64_t offset, std::size_t length, unsigned access) noexcept {
  return contained([=] { return make_device_region(pd, dm, offset, length, access); });
}

// The pages are there when it returns, also without IBV_ADVISE_MR_FLAG_FLUSH.
int advise_mr(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* pieces,
              std::uint32_t count) noexcept {
  if (!alive(pd->context)) return device::Context::refuse_child();
  if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) return EOPNOTSUPP;
  if (!names_itself(pd) || (flags & ~static_cast<unsigned>(IBV_ADVISE_MR_FLAG_FLUSH)) != 0) return EINVAL;
  if (pieces == nullptr || count == 0) return EINVAL;
  return contained([=] {
    return errno_of(device::prefetch(*ours(pd).machine, to_prefetch(advice),
                                     {reinterpret_cast<const engine::Sge*>(pieces), count}));
  });
}

VERBENA_EXPORT ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, std::size_t length, int access) {
  if (!is_ours(pd)) return real_reg_mr.call_or(nullptr, pd, address, length, access);
  return make_region({pd, address, length, reinterpret_cast<std::uint64_t>(address), static_cast<unsigned>(access)});
}

VERBENA_EXPORT ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova, int access) {
  if (!is_ours(pd)) return real_reg_mr_iova.call_or(nullptr, pd, address, length, iova, access);
  return make_region({pd, address, length, iova, static_cast<unsigned>(access)});
}

VERBENA_EXPORT ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, std::size_t length, std::uint64_t iova,
                                        unsigned access) {
  if (!is_ours(pd)) return real_reg_mr_iova2.call_or(nullptr, pd, address, length, iova, access);
  return make_region({pd, address, length, iova, access});
}

// Programs probe for it with fd -1, and take any errno but this one for support.
VERBENA_EXPORT ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova,
                                         int fd, int access) {
  if (!is_ours(pd)) return real_reg_dmabuf_mr.call_or(nullptr, pd, offset, length, iova, fd, access);
  return null_with(EOPNOTSUPP);
}

// Another ibv_mr for a region of this process; `addr` is not known to who imports it.
VERBENA_EXPORT ibv_mr* ibv_import_mr(ibv_pd* pd, std::uint32_t handle) {
  if (!is_ours(pd)) return real_import_mr.call_or(nullptr, pd, handle);
  return contained([=] { return import_region(pd, handle); });
}

VERBENA_EXPORT void ibv_unimport_mr(ibv_mr* mr) {
  if (!is_ours(mr)) return real_unimport_mr.call(mr);
  delete &ours(mr);
}

VERBENA_EXPORT int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* address, std::size_t length, int access) {
  if (!is_ours(mr)) return real_rereg_mr.call_or(IBV_REREG_MR_ERR_INPUT, mr, flags, pd, address, length, access);
  const int error =
      contained([=] { return replace_region(ours(mr), static_cast<unsigned>(flags), pd, address, length, access); });
  if (error == 0) return 0;
  errno = error;
  // The region is what it was, whoever refused; only in a child of fork nothing can be done with it.
  return error == ENODEV ? IBV_REREG_MR_ERR_CMD : IBV_REREG_MR_ERR_INPUT;
}

VERBENA_EXPORT int ibv_dereg_mr(ibv_mr* mr) {
  if (!is_ours(mr)) return real_dereg_mr.call_or(EOPNOTSUPP, mr);
  if (!alive(mr->context)) return device::Context::refuse_child();
  if (!names_itself(mr)) return ENOENT;
  if (const int error = errno_of(ours(mr).machine->withdraw())) return error;
  delete &ours(mr);
  return 0;
}

}  // namespace verbena::verbs
