// The descriptors that the child of a fork must close: a child that kept them would hold the parent's slot and
// connections beyond its death.
//
// A set of bits that changes without a lock, because in the child the other threads are gone in mid-step and whatever
// they locked stays locked.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace verbena::transport {

// Thread-safety: any thread may call anything; close_all() only in the child.
class ForkSet {
 public:
  // Descriptors beyond this are not kept track of; they close on exec like the others.
  static constexpr int kLimit = 1 << 16;

  void add(int fd) noexcept;
  void remove(int fd) noexcept;
  void close_all() noexcept;

 private:
  std::array<std::atomic<std::uint64_t>, kLimit / 64> bits_{};
};

}  // namespace verbena::transport
