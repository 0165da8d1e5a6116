// An opened device: what ibv_open_device gives, and the owner of what is made in it.
//
// Thread-safety: all calls from any thread.
// Ownership:     shared by every object made in it, so that an object that the application forgot stays harmless
//                after close().
// Errors:        every creation answers with an Error whose system_errno is what verbs returns, and whose message says
//                why in words.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "device/device.h"
#include "device/event_channel.h"
#include "device/object_kind.h"
#include "device/port.h"
#include "device/runtime.h"
#include "engine/address_handle.h"
#include "engine/limits.h"
#include "engine/memory_table.h"
#include "engine/memory_window.h"
#include "verbena/result.h"

namespace verbena::device {

class QueuePair;

class Context final : public std::enable_shared_from_this<Context>, public engine::WindowBinder, private PortListener {
 public:
  static Result<std::shared_ptr<Context>> open(const Device& device);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // From here on nothing arrives for what was made in it, but for an XRC receive queue pair that another context has,
  // too.
  void close() noexcept;
  bool closed() const noexcept { return closed_.load(std::memory_order_relaxed); }

  // False in a child of the process that opened it; every call that acts then fails with refuse_child().
  bool alive() const noexcept { return runtime_->alive(); }
  // Says once in the log what is wrong; ENODEV.
  static int refuse_child() noexcept;

  const Device& device() const noexcept { return ports_.front()->device(); }
  // Port 1 first.
  std::span<Port* const> ports() const noexcept { return ports_; }
  // nullptr where the device has no port of this number.
  Port* find_port(unsigned number) const noexcept {
    return number >= kFirstPort && number - kFirstPort < ports_.size() ? ports_[number - kFirstPort] : nullptr;
  }
  // Of all ports.
  DeviceCounters& counters() const noexcept { return ports_.front()->counters(); }
  Runtime& runtime() noexcept { return *runtime_; }
  const engine::Limits& limits() const noexcept { return limits_; }
  const Quirks& quirks() const noexcept { return runtime_->settings().quirks; }
  EventChannel& async_events() noexcept { return *async_events_; }

  // Memory regions and windows; the writer's lock is inside.
  const engine::MemoryTable& memory() const noexcept { return memory_; }
  Result<MemoryKey> add_region(engine::MemoryRegion& region);
  // The region is out of sight of every look-up when this returns success. EBUSY while a window is bound to it.
  Status remove_region(const engine::MemoryRegion& region);
  // `region` takes the place and the key of `old`, which nobody sees any more when this returns success. EBUSY as
  // above.
  Status replace_region(const engine::MemoryRegion& old, engine::MemoryRegion& region);
  Result<MemoryKey> add_window(engine::MemoryWindow& window);
  void remove_window(engine::MemoryWindow& window) noexcept;
  engine::MemoryFault bind(const engine::BindRequest& request) noexcept override;
  engine::MemoryFault invalidate(const engine::ProtectionDomain& domain, MemoryKey key, Qpn by) noexcept override;
  // The windows of type 2 that a queue pair bound are free: its number may go to another.
  void free_windows_of(Qpn qpn) noexcept;
  // Another variant of a key, drawn: what a window of type 1 has after its next binding.
  MemoryKey next_variant(MemoryKey key) noexcept;

  // False where the device has not that much memory left.
  bool take_device_memory(std::uint64_t bytes) noexcept;
  void give_device_memory(std::uint64_t bytes) noexcept { device_memory_.fetch_sub(bytes, std::memory_order_relaxed); }

  // One object more. kExhausted with ENOMEM that names the limit; what VERBENA_INJECT asks for this call, after the
  // time that it asks for. Requires: no lock is held.
  Status enter(ObjectKind kind);
  // One object less.
  void leave(ObjectKind kind) noexcept;
  std::uint32_t next_handle() noexcept { return handles_.fetch_add(1, std::memory_order_relaxed); }

  void enlist(QueuePair& queue_pair);
  void discharge(QueuePair& queue_pair) noexcept;
  // With VERBENA_STRICT: counts and names an address handle that is destroyed while a posted send names it.
  void check_unused(const engine::AddressHandle& handle) noexcept;

 private:
  Context(std::shared_ptr<Runtime> runtime, std::vector<Port*> ports, std::unique_ptr<EventChannel> events);
  Status check_unbound(const engine::MemoryRegion& region);  // Requires: memory_mutex_
  void on_port_event(const Port& port, PortEvent event) noexcept override;
  void on_mtu(const Port& port, std::uint32_t bytes) noexcept override;

  const std::shared_ptr<Runtime> runtime_;
  const std::vector<Port*> ports_;
  const engine::Limits limits_;
  const std::unique_ptr<EventChannel> async_events_;
  std::mutex memory_mutex_;
  engine::MemoryTable memory_;                                      // written under memory_mutex_
  engine::KeyStream variants_;                                      // guarded by memory_mutex_
  std::unordered_set<engine::MemoryWindow*> windows_;               // guarded by memory_mutex_
  std::array<std::atomic<std::uint32_t>, kObjectKinds> objects_{};  // relaxed: each only counts
  std::atomic<std::uint64_t> device_memory_{0};                     // bytes in use; relaxed: it only counts
  std::atomic<std::uint32_t> handles_{1};
  std::mutex mutex_;
  std::atomic<bool> closed_{false};      // relaxed: what must not be seen afterwards is taken out under mutex_
  std::vector<QueuePair*> queue_pairs_;  // guarded by mutex_
};

}  // namespace verbena::device
