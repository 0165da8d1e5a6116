// A protection domain: what may be used together. It knows how much lives in it, because it cannot go before that has.
//
// Thread-safety: every method may be called from any thread; the counts are independent of all other memory (relaxed).
// Ownership:     whoever makes an object in the domain calls enter(), and leave() when it is gone.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace verbena::engine {

enum class Resident : std::uint8_t {
  kMemoryRegion,
  kMemoryWindow,
  kQueuePair,
  kSharedReceiveQueue,
  kAddressHandle,
  kParentDomain
};
inline constexpr std::size_t kResidentKinds = 6;

class ProtectionDomain {
 public:
  explicit ProtectionDomain(std::uint32_t handle) noexcept : handle_(handle) {}
  ProtectionDomain(const ProtectionDomain&) = delete;
  ProtectionDomain& operator=(const ProtectionDomain&) = delete;

  std::uint32_t handle() const noexcept { return handle_; }

  void enter(Resident kind) noexcept { count_of(kind).fetch_add(1, std::memory_order_relaxed); }
  void leave(Resident kind) noexcept { count_of(kind).fetch_sub(1, std::memory_order_relaxed); }
  std::uint32_t residents(Resident kind) const noexcept {
    return counts_[static_cast<std::size_t>(kind)].load(std::memory_order_relaxed);
  }
  // Whether deallocation must fail with EBUSY.
  bool in_use() const noexcept {
    for (const auto& count : counts_) {
      if (count.load(std::memory_order_relaxed) != 0) return true;
    }
    return false;
  }

 private:
  std::atomic<std::uint32_t>& count_of(Resident kind) noexcept { return counts_[static_cast<std::size_t>(kind)]; }

  const std::uint32_t handle_;
  std::array<std::atomic<std::uint32_t>, kResidentKinds> counts_{};
};

}  // namespace verbena::engine
