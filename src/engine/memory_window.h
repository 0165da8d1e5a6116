// A memory window: a key of its own for a part of a memory region, with rights of its own, that a queue pair gives out
// and takes back by work requests (InfiniBand Architecture volume 1, section 10.6.7).
//
//            bind, not empty                      bind, not empty
//   ┌───────┐ ─────────────> ┌───────┐   ┌──────┐ ──────────────> ┌───────┐
//   │unbound│                │ bound │   │ free │                 │ bound │
//   └───────┘ <───────────── └───────┘   └──────┘ <────────────── └───────┘
//    type 1     bind, empty   ^ │ bind    type 2    invalidate      by one queue pair
//                             └─┘
//
// Who may use it: type 1, every queue pair of its protection domain; type 2 (2B), only the queue pair that bound it.
// It lies in the memory table like a region, under an index that stays; each binding has another variant of the key.
//
// A request from the network may look at a window while it changes. It reads the binding under a sequence number, and
// where that moved the key is unknown: the change came first. A request that found the binding before it was taken back
// may still be storing its packet when invalidate() returns.
//
// Thread-safety: bind(), invalidate() and unbind() by the one thread at a time that changes the memory table; reading
//                from any thread, wait-free.
// Ownership:     the caller's, as a region: kept until every look-up begun before its removal has ended. The domain
//                outlives it, and so does a region while it is bound.
// Errors:        a MemoryFault, which becomes the status of the work request.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/qpn.h"
#include "base/strong.h"
#include "engine/memory_fault.h"
#include "engine/memory_region.h"

namespace verbena::engine {

// The numbers are those of enum ibv_mw_type.
enum class WindowType : std::uint8_t { kType1 = 1, kType2 = 2 };

// A bind work request.
struct BindRequest {
  const ProtectionDomain* domain = nullptr;  // of the queue pair
  Qpn by;                                    // the queue pair
  WindowType type = WindowType::kType2;      // which kind the caller may bind: ibv_bind_mw() 1, IBV_WR_BIND_MW 2
  MemoryKey window;                          // any key the window had: its index tells which window
  MemoryKey key;                             // what it is to have: the same index
  MemoryKey region;                          // lkey of the region; without meaning where length is 0
  std::uint64_t address = 0;                 // as requests to the region say it
  std::uint64_t length = 0;                  // 0 unbinds a window of type 1
  AccessFlags access = 0;  // remote rights, and kZeroBased: requests count from the window's first byte
};

// What kinds of right a window can give.
// Programs say kLocalWrite as well, as they do for a region; it means nothing here.
inline constexpr AccessFlags kWindowAccess = kRemoteWrite | kRemoteRead | kRemoteAtomic | kZeroBased | kLocalWrite;

class MemoryWindow {
 public:
  MemoryWindow(const ProtectionDomain& domain, WindowType type) noexcept : domain_(domain), type_(type) {
    entry_.window = this;
  }
  MemoryWindow(const MemoryWindow&) = delete;
  MemoryWindow& operator=(const MemoryWindow&) = delete;

  WindowType type() const noexcept { return type_; }
  const ProtectionDomain& domain() const noexcept { return domain_; }
  // What it has now: of the last binding, or as it was made.
  MemoryKey key() const noexcept { return MemoryKey(key_.load(std::memory_order_relaxed)); }
  bool bound() const noexcept { return region_ != nullptr; }
  bool bound_by(Qpn qpn) const noexcept { return bound() && type_ == WindowType::kType2 && by() == qpn; }

  // Checks everything before it changes anything; `region` is what the request's region key names, or nullptr.
  MemoryFault bind(const BindRequest& request, MemoryRegion* region) noexcept;
  // Type 2, bound under `key` by `by`, a queue pair of `domain`: free again.
  MemoryFault invalidate(const ProtectionDomain& domain, MemoryKey key, Qpn by) noexcept;
  // Whatever it is: unbound, or free.
  void unbind() noexcept;

  struct Reach {
    std::span<std::byte>& bytes;
    bool& on_demand;  // `bytes` must be paged in first
  };
  // As MemoryTable::resolve_remote(). Any thread.
  MemoryFault resolve(const ProtectionDomain& domain, MemoryKey rkey, std::uint64_t address, std::uint32_t length,
                      AccessFlags access, Qpn by, Reach reach) const noexcept;

 private:
  friend class MemoryTable;

  // What a request needs to know; one consistent copy of it.
  struct Binding {
    std::uint32_t key;
    std::uint32_t by;
    AccessFlags access;
    std::uint64_t iova;
    std::uint64_t length;
    std::uint64_t memory;  // where its first byte lies in the process
  };
  Qpn by() const noexcept { return Qpn(by_.load(std::memory_order_relaxed)); }
  MemoryFault check(const BindRequest& request, const MemoryRegion* region) const noexcept;
  void write(const Binding& binding) noexcept;
  bool read(Binding& binding) const noexcept;

  const ProtectionDomain& domain_;
  const WindowType type_;
  MemoryRegion entry_;              // stands in the table; matches no key
  MemoryRegion* region_ = nullptr;  // the writer's

  // Odd while the binding is written. Each field is stored by release and loaded by acquire, so that none passes it.
  std::atomic<std::uint32_t> sequence_{0};
  std::atomic<std::uint32_t> key_{0};
  std::atomic<std::uint32_t> by_{0};
  std::atomic<AccessFlags> access_{0};
  std::atomic<std::uint64_t> iova_{0};
  std::atomic<std::uint64_t> length_{0};  // 0: nothing is bound
  std::atomic<std::uint64_t> memory_{0};
};

// The windows of a device, as its queue pairs change them.
//
// Thread-safety: the implementation locks.
class WindowBinder {
 public:
  // kNone: done; the key of the request is valid from here on. Anything else: nothing changed.
  virtual MemoryFault bind(const BindRequest& request) noexcept = 0;
  // A local invalidate or a received send with invalidate, by queue pair `by` of `domain`.
  virtual MemoryFault invalidate(const ProtectionDomain& domain, MemoryKey key, Qpn by) noexcept = 0;

 protected:
  ~WindowBinder() = default;
};

}  // namespace verbena::engine
