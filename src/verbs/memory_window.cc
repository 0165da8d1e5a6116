// Memory windows: making, binding those of type 1, and giving back. Those of type 2 are bound and invalidated by work
// requests of their own (post.cc).
#include "device/memory_window.h"

#include <new>

#include "verbs/objects.h"
#include "verbs/operations.h"
#include "verbs/refusal.h"

namespace verbena::verbs {
namespace {

constexpr unsigned kWindowAccess =
    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;

ibv_mw* make_window(ibv_pd* pd, ibv_mw_type type) {
  if (!alive(pd->context)) return null_with(device::Context::refuse_child());
  if (!names_itself(pd) || (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)) return null_with(EINVAL);
  auto machine = device::MemoryWindow::create(*ours(pd).machine, static_cast<engine::WindowType>(type));
  if (!machine) return null_with(machine.error());
  auto* const mw = new VerbsMw;
  mw->machine = std::move(*machine);
  mw->domain = Hold(ours(pd).holders);
  mw->base = {.context = pd->context,
              .pd = pd,
              .rkey = mw->machine->key().value(),
              .handle = mw->machine->handle(),
              .type = type};
  return &mw->base;
}

// What the caller can be told at once; the rest is found when the request has its turn.
int check_binding(const ibv_qp* qp, ibv_mw* mw, const ibv_mw_bind& binding) noexcept {
  const ibv_mw_bind_info& info = binding.bind_info;
  if (!names_itself(mw) || qp->context != mw->context) return EINVAL;
  if ((info.mw_access_flags & ~kWindowAccess) != 0) return EINVAL;
  if (info.mr == nullptr) return 0;
  if (info.mr->context != mw->context || !names_itself(info.mr)) return EINVAL;
  if (qp->pd == nullptr) return EINVAL;  // it sends nothing
  return qp->pd->handle == mw->pd->handle ? 0 : EPERM;
}

}  // namespace

ibv_mw* alloc_window(ibv_pd* pd, ibv_mw_type type) noexcept {
  return contained([=] { return make_window(pd, type); });
}

int dealloc_window(ibv_mw* mw) noexcept {
  if (!alive(mw->context)) return device::Context::refuse_child();
  if (!names_itself(mw)) return ENOENT;
  delete &ours(mw);
  return 0;
}

// Becomes a work request like any other; the window's new key is told as soon as it is posted.
int bind_window(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* binding) noexcept {
  if (!alive(mw->context)) return device::Context::refuse_child();
  if (const int error = check_binding(qp, mw, *binding)) return error;
  ibv_send_wr request{};
  request.wr_id = binding->wr_id;
  request.opcode = IBV_WR_BIND_MW;
  request.send_flags = binding->send_flags;
  request.bind_mw.mw = mw;
  request.bind_mw.rkey = ours(mw->context).machine->next_variant(MemoryKey(mw->rkey)).value();
  request.bind_mw.bind_info = binding->bind_info;
  ibv_send_wr* bad = nullptr;
  const int error = post_send(qp, &request, &bad);
  if (error == 0) mw->rkey = request.bind_mw.rkey;
  return error;
}

}  // namespace verbena::verbs
