// Device memory.
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

constinit Real<ibv_dm*(ibv_context*, std::uint32_t)> real_import_dm{"ibv_import_dm", "IBVERBS_1.13"};
constinit Real<void(ibv_dm*)> real_unimport_dm{"ibv_unimport_dm", "IBVERBS_1.13"};

int copy_in(ibv_dm* dm, std::uint64_t offset, const void* from, std::size_t length) noexcept {
  return ours(dm).machine->copy_in(offset, from, length);
}

int copy_out(void* to, ibv_dm* dm, std::uint64_t offset, std::size_t length) noexcept {
  return ours(dm).machine->copy_out(to, offset, length);
}

ibv_dm* wrap(ibv_context* context, std::shared_ptr<device::DeviceMemory> machine) {
  auto dm = std::make_unique<VerbsDm>();
  dm->machine = std::move(machine);
  shared_memories().add(*ours(context).machine, dm->machine->handle(), dm->machine);
  dm->base = {.context = context,
              .memcpy_to_dm = copy_in,
              .memcpy_from_dm = copy_out,
              .comp_mask = 0,
              .handle = dm->machine->handle()};
  return &dm.release()->base;
}

ibv_dm* allocate(ibv_context* context, const ibv_alloc_dm_attr& attributes) {
  if (!alive(context)) return null_with(device::Context::refuse_child());
  if (attributes.comp_mask != 0) return null_with(EINVAL);
  auto machine = device::DeviceMemory::create(*ours(context).machine, attributes.length, attributes.log_align_req);
  if (!machine) return null_with(machine.error());
  return wrap(context, std::move(*machine));
}

ibv_dm* import(ibv_context* context, std::uint32_t handle) {
  if (!alive(context)) return null_with(device::Context::refuse_child());
  auto machine = shared_memories().find(*ours(context).machine, handle);
  return machine == nullptr ? null_with(EINVAL) : wrap(context, std::move(machine));
}

}  // namespace

ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attributes) noexcept {
  return contained([=] { return allocate(context, *attributes); });
}

int free_dm(ibv_dm* dm) noexcept {
  if (!alive(dm->context)) return device::Context::refuse_child();
  if (!names_itself(dm)) return ENOENT;
  if (ours(dm).holders.any()) return EBUSY;
  delete &ours(dm);
  return 0;
}

VERBENA_EXPORT ibv_dm* ibv_import_dm(ibv_context* context, std::uint32_t handle) {
  if (!is_ours(context)) return real_import_dm.call_or(nullptr, context, handle);
  return contained([=] { return import(context, handle); });
}

VERBENA_EXPORT void ibv_unimport_dm(ibv_dm* dm) {
  if (!is_ours(dm)) return real_unimport_dm.call(dm);
  delete &ours(dm);
}

}  // namespace verbena::verbs
