// XRC domains.
#include <new>

#include <fcntl.h>

#include "verbs/objects.h"
#include "verbs/operations.h"
#include "verbs/refusal.h"

namespace verbena::verbs {
namespace {

constexpr std::uint32_t kBoth = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;

ibv_xrcd* open_domain(ibv_context* context, const ibv_xrcd_init_attr& attributes) {
  if (!alive(context)) return null_with(device::Context::refuse_child());
  if (attributes.comp_mask != kBoth) return null_with(EINVAL);
  device::XrcDomain::Wanted wanted{.file = attributes.fd,
                                   .create = (attributes.oflags & O_CREAT) != 0,
                                   .exclusive = (attributes.oflags & O_EXCL) != 0};
  if (attributes.fd == -1) wanted.file.reset();
  auto machine = device::XrcDomain::open(*ours(context).machine, wanted);
  if (!machine) return null_with(machine.error());
  auto* const xrcd = new VerbsXrcd;
  xrcd->machine = std::move(*machine);
  xrcd->base.context = context;
  return &xrcd->base;
}

}  // namespace

ibv_xrcd* open_xrc_domain(ibv_context* context, ibv_xrcd_init_attr* attributes) noexcept {
  return contained([=] { return open_domain(context, *attributes); });
}

int close_xrc_domain(ibv_xrcd* xrcd) noexcept {
  if (!alive(xrcd->context)) return device::Context::refuse_child();
  if (ours(xrcd).holders.any()) return EBUSY;
  delete &ours(xrcd);
  return 0;
}

}  // namespace verbena::verbs
