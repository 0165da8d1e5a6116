// Why calls on protection domains and memory fail.
#include <cerrno>

#include "rdma/error_explanation.h"

namespace verbena::rdma {
namespace {

const LikelyCause kMemlock{"the limit on locked memory is below what is registered in sum",
                           "ulimit -l; verbena doctor: memlock",
                           "raise it (ulimit -l unlimited, LimitMEMLOCK, the container's ulimits), or add IPC_LOCK"};
const LikelyCause kLimit{"the device's own limit is reached", "ibv_devinfo -v; rdma resource show",
                         "give back what is not needed"};

}  // namespace

std::vector<CallExplanation> memory_call_explanations() {
  return {
      {"ibv_alloc_pd", ENOMEM, "The device has no more protection domains.", {kLimit, kMemlock}},
      {"ibv_dealloc_pd",
       EBUSY,
       "Something of the domain is still there: it frees nothing by itself, not even address handles.",
       {{"address handles that were not destroyed", "count ibv_create_ah against ibv_destroy_ah",
         "destroy them first; a directory's close() says what is left"},
        {"memory regions, queue pairs, shared receive queues, windows", "rdma resource show mr, qp",
         "destroy them first"}}},
      {"ibv_dealloc_pd",
       EINVAL,
       "It is no domain, or was given back before.",
       {{"given back twice", "AddressSanitizer", "one owner"}}},
      {"ibv_reg_mr",
       ENOMEM,
       "The memory could not be pinned.",
       {kMemlock, kLimit, {"memory is short, or a container's limit", "dmesg", "register less, or use huge pages"}}},
      {"ibv_reg_mr",
       EINVAL,
       "Address, length or rights are refused.",
       {{"a right that needs IBV_ACCESS_LOCAL_WRITE stands without it (REMOTE_WRITE, REMOTE_ATOMIC)",
         "give access=... behind the errno", "add LOCAL_WRITE"},
        {"length 0, or above max_mr_size", "ibv_devinfo -v", "register parts"},
        {"a right that the device does not have (on demand, relaxed ordering)", "ibv_query_device_ex",
         "leave it out"}}},
      {"ibv_reg_mr",
       EFAULT,
       "The range is not mapped, or may not be written.",
       {{"read-only memory with LOCAL_WRITE, a file mapping on DAX, or freed memory", "/proc/PID/maps",
         "register writable memory, or leave LOCAL_WRITE out"}}},
      {"ibv_reg_mr",
       EOPNOTSUPP,
       "The device does not have this kind of registration.",
       {{"on-demand paging, device memory", "ibv_devinfo -v", "register by the plain call"}}},
      {"ibv_reg_mr", EPERM, "This process may not pin memory.", {kMemlock}},
      {"ibv_dereg_mr",
       EBUSY,
       "The region is in use.",
       {{"a memory window is bound to it", "rdma resource show mr", "invalidate or free the window first"}}},
      {"ibv_dereg_mr",
       EINVAL,
       "It is no region, was given back before, or a window is bound to it (rxe).",
       {{"given back twice", "AddressSanitizer", "one owner"}}},
      {"ibv_rereg_mr",
       EINVAL,
       "The new rights, address or length are refused.",
       {{"as for ibv_reg_mr", "", "register anew instead"}}},
      {"ibv_rereg_mr", EBUSY, "The region is in use.", {{"a window is bound to it", "", "free the window first"}}},
      {"ibv_alloc_mw",
       EOPNOTSUPP,
       "The device has no memory windows.",
       {{"an optional feature", "ibv_devinfo -v: max_mw", "use memory regions"}}},
      {"ibv_alloc_mw", ENOMEM, "No more windows.", {kLimit}},
      {"ibv_bind_mw",
       EINVAL,
       "The bind request is refused.",
       {{"type 2 window, which is bound by a work request", "", "IBV_WR_BIND_MW"},
        {"the region lacks IBV_ACCESS_MW_BIND, or the range leaves it", "", "add the right"}}},
      {"ibv_bind_mw",
       EPERM,
       "Window, region and queue pair are of different domains.",
       {{"", "", "make all three from one domain"}}},
      {"ibv_alloc_dm",
       EOPNOTSUPP,
       "The device has no memory of its own to give.",
       {{"an optional feature", "ibv_query_device_ex: max_dm_size", "use host memory"}}},
  };
}

}  // namespace verbena::rdma
