// Our objects as programs hold them: what verbs.h shows at the front, the device room's object behind it.
//
// The kernel knows an object by its handle, and a handle that a program has overwritten names nothing. Control calls
// keep to that: destroying under a wrong handle is ENOENT, making something out of it EINVAL.
//
// Thread-safety: as the objects of the device room. Fields of verbs.h that count events are guarded by the object's own
//                mutex, as verbs.h has it.
// Ownership:     each is made by its ibv_create_* and freed by its ibv_destroy_*.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "device/address_handle.h"
#include "device/completion_queue.h"
#include "device/context.h"
#include "device/event_channel.h"
#include "device/flow.h"
#include "device/memory_region.h"
#include "device/memory_window.h"
#include "device/protection_domain.h"
#include "device/queue_pair.h"
#include "device/shared_receive_queue.h"
#include "device/xrc_domain.h"
#include "verbs/hold.h"
#include "verbs/send_staging.h"
#include "verbs/verbs_api.h"

namespace verbena::verbs {

struct VerbsContext {
  verbs_context extended{};
  std::shared_ptr<device::Context> machine;

  ~VerbsContext();
};

struct VerbsTd {
  ibv_td base{};
  Holders holders;
};

// A protection domain, or a parent domain: then what is made in it belongs to the protection domain under it.
struct VerbsPd {
  ibv_pd base{};
  std::shared_ptr<device::ProtectionDomain> machine;
  bool is_parent = false;
  Hold thread_domain;
  Holders holders;  // what was made in it
};

struct VerbsXrcd {
  ibv_xrcd base{};
  std::shared_ptr<device::XrcDomain> machine;
  Holders holders;  // shared receive queues and queue pairs
};

struct VerbsMr {
  ibv_mr base{};
  std::uint64_t iova = 0;
  unsigned access = 0;
  Hold domain;
  Hold memory;  // of the device, where it is of that
  std::shared_ptr<device::MemoryRegion> machine;
};

struct VerbsDm {
  ibv_dm base{};
  std::shared_ptr<device::DeviceMemory> machine;
  Holders holders;  // regions
};

struct VerbsMw {
  ibv_mw base{};
  Hold domain;
  std::unique_ptr<device::MemoryWindow> machine;
};

struct VerbsAh {
  ibv_ah base{};
  Hold domain;
  std::unique_ptr<device::AddressHandle> machine;
};

struct VerbsChannel {
  ibv_comp_channel base{};
  std::unique_ptr<device::EventChannel> machine;
};

// Events that a program has taken and must acknowledge before the object may go.
using EventCount = std::atomic<std::uint32_t>;

struct VerbsCq {
  ibv_cq_ex base{};  // its front is an ibv_cq
  Hold domain;
  Holders holders;  // shared receive queues of XRC
  std::unique_ptr<device::CompletionQueue> machine;
  EventCount completion_events{0};
  EventCount async_events{0};
  // Of the extended polling calls, between a start that succeeded and the end.
  std::mutex polling;
  bool single_threaded = false;  // the program says so: `polling` is not needed
  device::Completion current;
  std::uint64_t current_stamp = 0;

  ibv_cq* plain() noexcept { return reinterpret_cast<ibv_cq*>(&base); }
};

struct VerbsSrq {
  ibv_srq base{};
  Hold domain;
  Hold xrc_domain;
  Hold completions;
  std::unique_ptr<device::SharedReceiveQueue> machine;
  EventCount async_events{0};
};

// An XRC receive queue pair may have several: whoever opened it has one of their own.
struct VerbsQp {
  ibv_qp_ex base{};  // its front is an ibv_qp
  Hold domain;       // or, of an XRC receive queue pair, the XRC domain
  // As the real library keeps it behind: whether the extended calls may be used.
  std::uint32_t extended = 0;
  ibv_xrcd* xrcd = nullptr;
  std::shared_ptr<device::QueuePair> machine;
  EventCount async_events{0};
  std::uint64_t send_ops = 0;  // the extended sends that it was made for: enum ibv_qp_create_send_ops_flags
  SendStaging staging;

  ibv_qp* plain() noexcept { return &base.qp_base; }
};
inline constexpr std::uint32_t kHasExtendedCalls = 2;

struct VerbsFlow {
  ibv_flow base{};
  std::unique_ptr<device::Flow> machine;
};

inline VerbsContext& ours(ibv_context* context) noexcept {
  return *reinterpret_cast<VerbsContext*>(reinterpret_cast<std::byte*>(context) - offsetof(verbs_context, context));
}
inline VerbsPd& ours(ibv_pd* pd) noexcept {
  return *reinterpret_cast<VerbsPd*>(pd);
}
inline VerbsTd& ours(ibv_td* td) noexcept {
  return *reinterpret_cast<VerbsTd*>(td);
}
inline VerbsXrcd& ours(ibv_xrcd* xrcd) noexcept {
  return *reinterpret_cast<VerbsXrcd*>(xrcd);
}
inline VerbsMr& ours(ibv_mr* mr) noexcept {
  return *reinterpret_cast<VerbsMr*>(mr);
}
inline VerbsDm& ours(ibv_dm* dm) noexcept {
  return *reinterpret_cast<VerbsDm*>(dm);
}
inline VerbsMw& ours(ibv_mw* mw) noexcept {
  return *reinterpret_cast<VerbsMw*>(mw);
}
inline VerbsAh& ours(ibv_ah* ah) noexcept {
  return *reinterpret_cast<VerbsAh*>(ah);
}
inline VerbsChannel& ours(ibv_comp_channel* channel) noexcept {
  return *reinterpret_cast<VerbsChannel*>(channel);
}
inline VerbsCq& ours(ibv_cq* cq) noexcept {
  return *reinterpret_cast<VerbsCq*>(cq);
}
inline VerbsCq& ours(ibv_cq_ex* cq) noexcept {
  return *reinterpret_cast<VerbsCq*>(cq);
}
inline VerbsSrq& ours(ibv_srq* srq) noexcept {
  return *reinterpret_cast<VerbsSrq*>(srq);
}
inline VerbsQp& ours(ibv_qp* qp) noexcept {
  return *reinterpret_cast<VerbsQp*>(qp);
}
inline VerbsFlow& ours(ibv_flow* flow) noexcept {
  return *reinterpret_cast<VerbsFlow*>(flow);
}
inline VerbsQp& ours(ibv_qp_ex* qp) noexcept {
  return *reinterpret_cast<VerbsQp*>(qp);
}

// Whether the handle still names this object.
template <class Object>
bool names_itself(Object* object) noexcept {
  return object->handle == ours(object).machine->handle();
}

inline bool alive(ibv_context* context) noexcept {
  return ours(context).machine->alive();
}

// Whether `object`, which may be null, can be part of something made in `context`.
template <class Object>
bool usable_in(Object* object, const ibv_context* context) noexcept {
  return object == nullptr || (object->context == context && names_itself(object));
}

}  // namespace verbena::verbs
