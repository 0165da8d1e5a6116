// Why devices cannot be listed, opened and queried, and why events do not come.
#include <cerrno>

#include "rdma/error_explanation.h"

namespace verbena::rdma {
namespace {

const LikelyCause kGone{"the device was removed or reset while it was open", "IBV_EVENT_DEVICE_FATAL; dmesg",
                        "close everything, open it anew"};

}  // namespace

// NOLINTNEXTLINE(readability-function-size): a table
std::vector<CallExplanation> device_call_explanations() {
  return {
      {"ibv_get_device_list",
       ENOSYS,
       "The kernel has no RDMA subsystem.",
       {{"ib_uverbs is not loaded", "lsmod; ls /sys/class/infiniband_verbs",
         "modprobe ib_uverbs and the card's driver; or: verbena run -- CMD"}}},
      {"ibv_get_device_list",
       EPERM,
       "The ABI of the kernel does not fit, or may not be read.",
       {{"/sys is not mounted, or is hidden in this container", "ls /sys/class/infiniband_verbs", "mount /sys"}}},
      {"ibv_get_device_list",
       ENOMEM,
       "Memory is short.",
       {{"the process' memory limit", "ulimit -v; the container's limit", "raise it"}}},
      {"ibv_open_device",
       ENOENT,
       "Its file in /dev/infiniband is not there.",
       {{"in a container: the device was not handed in", "ls -l /dev/infiniband",
         "request it from the device plugin, or --device=/dev/infiniband"},
        {"ib_uverbs is not loaded", "lsmod", "modprobe ib_uverbs"}}},
      {"ibv_open_device",
       EACCES,
       "This user may not open its file.",
       {{"mode of /dev/infiniband/uverbs*", "ls -l /dev/infiniband", "a udev rule, or the group of those files"},
        {"the device rules of the container", "the runtime's log", "allow the character device there"}}},
      {"ibv_open_device",
       EPERM,
       "The device rules of the container forbid it, or its network namespace does.",
       {{"RDMA namespace mode exclusive, and the device is in another namespace", "rdma system show",
         "rdma dev set NAME netns PID"},
        {"device cgroup", "the runtime's log", "allow the character device"}}},
      {"ibv_open_device", ENODEV, "The device has gone.", {kGone}},
      {"ibv_open_device",
       EINVAL,
       "The provider refuses.",
       {{"on Verbena's own device: a VERBENA_... variable that cannot be read", "it is named on stderr", "correct it"},
        {"rdma-core and the kernel driver do not fit", "versions of both", "install one release"}}},
      {"ibv_open_device",
       EMFILE,
       "No more open files are allowed.",
       {{"ulimit -n", "ls /proc/PID/fd | wc -l", "close contexts, or raise it"}}},
      {"ibv_open_device",
       ENOMEM,
       "Memory is short, or may not be locked.",
       {{"a small limit on locked memory", "ulimit -l", "raise it; CAP_IPC_LOCK in a container"}}},
      {"ibv_close_device",
       EBUSY,
       "Objects made from it are still there.",
       {{"queue pairs, regions, domains", "rdma resource show", "destroy them first"}}},
      {"ibv_query_device", EIO, "The device does not answer.", {kGone}},
      {"ibv_query_device", ENODEV, "The device has gone.", {kGone}},
      {"ibv_query_port",
       EINVAL,
       "No such port.",
       {{"port_num 0, or above phys_port_cnt", "ibv_devinfo", "ports count from 1"}}},
      {"ibv_query_port",
       ENODEV,
       "The interface of the port is not here.",
       {{"it is in another network namespace", "ip link; verbena doctor", "attach it to this container"}}},
      {"ibv_query_port", EIO, "The device does not answer.", {kGone}},
      {"ibv_get_async_event",
       EAGAIN,
       "No event is there, and the descriptor does not block.",
       {{"O_NONBLOCK is set", "", "poll(2) the descriptor first"}}},
      {"ibv_get_async_event",
       EINTR,
       "A signal ended the wait.",
       {{"a handler without SA_RESTART", "", "call it again"}}},
      {"ibv_get_async_event", EIO, "The device has gone.", {kGone}},
      {"ibv_fork_init",
       EINVAL,
       "Too late: memory is registered already.",
       {{"called after the first ibv_reg_mr", "", "call it first thing in main(), or set RDMAV_FORK_SAFE=1"}}},
      {"ibv_fork_init",
       ENOSYS,
       "The kernel has no madvise(MADV_DONTFORK).",
       {{"a very old kernel", "uname -r", "do not fork while memory is registered"}}},
  };
}

}  // namespace verbena::rdma
