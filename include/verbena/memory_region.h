// Memory the device may touch, and receive buffers that hide the 40 bytes in front of each datagram.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <infiniband/verbs.h>

#include "verbena/call_site.h"
#include "verbena/protection_domain.h"

namespace verbena {

// Thread-safety: const functions, any thread.
// Ownership:     owns the registration, not the memory, which must outlive it.
// Errors:        kExhausted names the locked-memory limit of the process where that is the likely cause.
class VERBENA_API MemoryRegion : public VerbsOwner<ibv_mr> {
 public:
  MemoryRegion() = default;
  // `access` as IBV_ACCESS_*.
  static Result<MemoryRegion> create(const ProtectionDomain& domain, std::span<std::byte> memory,
                                     int access = IBV_ACCESS_LOCAL_WRITE, CallSite place = CallSite::current());
  // 0 where it is empty.
  std::uint32_t lkey() const noexcept { return get() != nullptr ? get()->lkey : 0; }
  std::uint32_t rkey() const noexcept { return get() != nullptr ? get()->rkey : 0; }

 private:
  using VerbsOwner::VerbsOwner;
};

// A row of equal slots for datagrams, registered once. Each slot has the 40 bytes that a UD receive needs for the GRH,
// and payload() never shows them.
//
// Thread-safety: none for one slot; different slots, different threads.
// Ownership:     owns the memory and its registration.
// Errors:        as MemoryRegion.
class VERBENA_API DatagramBuffers {
 public:
  static constexpr std::size_t kGrhBytes = 40;

  DatagramBuffers() = default;
  static Result<DatagramBuffers> create(const ProtectionDomain& domain, std::size_t slots, std::size_t payload_bytes,
                                        CallSite place = CallSite::current());

  // 0 where it is empty, both.
  std::size_t size() const noexcept { return memory_ ? slots_ : 0; }
  std::size_t payload_capacity() const noexcept { return memory_ ? payload_bytes_ : 0; }

  // Requires, for all: index < size().
  std::span<std::byte> payload(std::size_t index) noexcept { return {at(index) + kGrhBytes, payload_bytes_}; }
  // What was received: `byte_len` as the completion gives it, which counts the GRH. Empty where it is below 40.
  std::span<const std::byte> received(std::size_t index, std::uint32_t byte_len) const noexcept;
  // The 40 bytes in front; they mean something only where the completion has IBV_WC_GRH.
  std::span<const std::byte, kGrhBytes> grh(std::size_t index) const noexcept {
    return std::span<const std::byte, kGrhBytes>(at(index), kGrhBytes);
  }
  // For ibv_post_recv: the whole slot. Also clears the GRH bytes, so that the next reader sees no old ones.
  ibv_sge receive_sge(std::size_t index) noexcept;
  // For ibv_post_send: the first `bytes` of the payload. Requires: bytes <= payload_capacity().
  ibv_sge send_sge(std::size_t index, std::size_t bytes) const noexcept;

 private:
  std::byte* at(std::size_t index) const noexcept { return memory_.get() + index * stride_; }

  std::shared_ptr<std::byte[]> memory_;
  MemoryRegion region_;  // after memory_: destroyed first
  std::size_t slots_ = 0;
  std::size_t payload_bytes_ = 0;
  std::size_t stride_ = 0;
};

}  // namespace verbena
