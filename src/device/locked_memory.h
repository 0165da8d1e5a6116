// What a kernel driver would count against RLIMIT_MEMLOCK for registered memory: whole pages, once for each region, for
// all of the process. Counted only with the quirk `memlock`; nothing is locked.
//
// Thread-safety: any thread.
// Ownership:     a value that gives its pages back when it goes.
#pragma once

#include <cstdint>
#include <utility>

#include "verbena/result.h"

namespace verbena::device {

class LockedMemory {
 public:
  LockedMemory() = default;
  // kExhausted with ENOMEM where the limit would be passed and the thread has not CAP_IPC_LOCK.
  static Result<LockedMemory> charge(std::uint64_t address, std::uint64_t length);
  LockedMemory(LockedMemory&& other) noexcept : bytes_(std::exchange(other.bytes_, 0)) {}
  LockedMemory& operator=(LockedMemory&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~LockedMemory();

 private:
  explicit LockedMemory(std::uint64_t bytes) noexcept : bytes_(bytes) {}
  std::uint64_t bytes_ = 0;
};

}  // namespace verbena::device
