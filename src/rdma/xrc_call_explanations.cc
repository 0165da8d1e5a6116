// Why calls of XRC fail: domains, the queue pairs and shared receive queues in them, and the extended calls that make
// those.
#include <cerrno>

#include "rdma/error_explanation.h"

namespace verbena::rdma {
namespace {

const LikelyCause kNoXrc{
    "the device has no XRC: kernel rxe, siw and EFA have none, Verbena's own device and ConnectX do",
    "ibv_devinfo -v: XRC in device_cap_flags", "use RC and shared receive queues, or another device"};
const LikelyCause kOtherContext{"the XRC domain, protection domain or completion queue is of another ibv_context", "",
                                "make all of them from one context"};

}  // namespace

// NOLINTNEXTLINE(readability-function-size): a table
std::vector<CallExplanation> xrc_call_explanations() {
  return {
      {"ibv_open_xrcd",
       EAGAIN,
       "There is no XRC domain of this file yet.",
       {{"O_CREAT is not among oflags, and nobody has made the domain", "xrcd_init_attr.oflags",
         "give O_CREAT, in the process that comes first or in all"},
        {"on Verbena's own device another process made it: processes do not share XRC domains there, since each has "
         "the device in itself",
         "is the device named verbenaN?", "keep all queue pairs and queues of the domain in one process"}}},
      {"ibv_open_xrcd",
       EINVAL,
       "The attributes are refused.",
       {{"comp_mask lacks IBV_XRCD_INIT_ATTR_FD or IBV_XRCD_INIT_ATTR_OFLAGS: both are needed", "comp_mask",
         "set both"},
        {"O_EXCL was given, and the domain of this file is there already", "oflags",
         "leave O_EXCL out to open it, or close the other one first"}}},
      {"ibv_open_xrcd",
       EBADF,
       "The descriptor is not open.",
       {{"fd was closed before, or never opened", "ls -l /proc/PID/fd",
         "open a file that all sharers open, or give -1 for a domain that nobody shares"}}},
      {"ibv_open_xrcd",
       ENOMEM,
       "No more XRC domains.",
       {{"a limit of the device or of VERBENA_LIMITS", "rdma resource; VERBENA_LIMITS", "share domains"}}},
      {"ibv_open_xrcd", EOPNOTSUPP, "The device does not have XRC.", {kNoXrc}},
      {"ibv_open_xrcd", ENOSYS, "The device, or its user-space driver, does not have XRC.", {kNoXrc}},
      {"ibv_close_xrcd",
       EBUSY,
       "Something still lives in the domain.",
       {{"a queue pair of type IBV_QPT_XRC_RECV, each of its handles (ibv_open_qp) counts", "rdma resource show qp",
         "destroy them first"},
        {"a shared receive queue of type IBV_SRQT_XRC", "", "destroy it first, after the queue pairs"}}},
      {"ibv_create_qp_ex",
       EINVAL,
       "The attributes are refused.",
       {{"IBV_QPT_XRC_RECV without an XRC domain: comp_mask lacks IBV_QP_INIT_ATTR_XRCD, or xrcd is NULL; it is made "
         "in "
         "that, not in a protection domain",
         "comp_mask", "set IBV_QP_INIT_ATTR_XRCD and xrcd"},
        {"another type, IBV_QPT_XRC_SEND too, without a protection domain: comp_mask lacks IBV_QP_INIT_ATTR_PD",
         "comp_mask", "set IBV_QP_INIT_ATTR_PD and pd"},
        kOtherContext,
        {"max_send_wr, max_recv_wr, max_send_sge, max_recv_sge or max_inline_data too large", "ibv_devinfo -v",
         "ask for less"}}},
      {"ibv_create_qp_ex",
       EOPNOTSUPP,
       "The device does not have this type of queue pair, or something that comp_mask asks for.",
       {kNoXrc,
        {"a bit of comp_mask, of create_flags or of send_ops_flags that the device does not know",
         "take the bits away one by one", "do without it"}}},
      {"ibv_create_qp_ex",
       ENOMEM,
       "The queue pair could not be made.",
       {{"more than max_qp, or the limit on locked memory is too small", "ibv_devinfo -v; ulimit -l",
         "share queue pairs; raise the limit"}}},
      {"ibv_open_qp",
       EINVAL,
       "There is no such queue pair to open.",
       {{"the XRC domain has no queue pair of this number, or it is destroyed already: it lives until the last of its "
         "handles is",
         "qp_num as its maker told it", "tell the number anew"},
        {"on Verbena's own device another process made it: processes do not share XRC domains there",
         "is the device named verbenaN?", "open it in the process that made it"},
        {"comp_mask lacks XRCD, NUM or TYPE, or qp_type is not IBV_QPT_XRC_RECV: no other type can be opened",
         "comp_mask; qp_type", "set all three"},
        kOtherContext}},
      {"ibv_open_qp", EOPNOTSUPP, "The device does not have XRC.", {kNoXrc}},
      {"ibv_open_qp", ENOSYS, "The device, or its user-space driver, does not have XRC.", {kNoXrc}},
      {"ibv_create_srq_ex",
       EINVAL,
       "The attributes are refused.",
       {{"IBV_SRQT_XRC needs an XRC domain and a completion queue: comp_mask lacks IBV_SRQ_INIT_ATTR_XRCD or "
         "IBV_SRQ_INIT_ATTR_CQ, or one of the two is NULL",
         "comp_mask", "set both beside IBV_SRQ_INIT_ATTR_TYPE and IBV_SRQ_INIT_ATTR_PD"},
        {"no protection domain: comp_mask lacks IBV_SRQ_INIT_ATTR_PD", "comp_mask", "set it"},
        kOtherContext,
        {"max_wr above max_srq_wr, or max_sge above max_srq_sge", "ibv_devinfo -v", "ask for less"}}},
      {"ibv_create_srq_ex",
       EOPNOTSUPP,
       "The device does not have this type of shared receive queue.",
       {kNoXrc, {"tag matching (IBV_SRQT_TM)", "srq_type; ibv_devinfo -v: tm_caps", "match tags in the program"}}},
      {"ibv_create_srq_ex", ENOSYS, "The device, or its user-space driver, does not have this type.", {kNoXrc}},
      {"ibv_create_srq_ex",
       ENOMEM,
       "The queue could not be made.",
       {{"more than max_srq, or the limit on locked memory is too small", "ibv_devinfo -v; ulimit -l",
         "share queues; raise the limit"}}},
      {"ibv_get_srq_num",
       EINVAL,
       "The queue has no number.",
       {{"it is not of type IBV_SRQT_XRC: only those have one, for the sender to name (remote_srqn)", "srq_type",
         "make it with ibv_create_srq_ex and srq_type IBV_SRQT_XRC"}}},
      {"ibv_get_srq_num", EOPNOTSUPP, "The device does not have XRC.", {kNoXrc}},
      {"ibv_get_srq_num", ENOSYS, "The device, or its user-space driver, does not have XRC.", {kNoXrc}},
  };
}

}  // namespace verbena::rdma
