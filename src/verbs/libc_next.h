// The libc call behind one that this library stands in front of.
//
// Found when this library is loaded, because a program may call open() where looking it up is not allowed: in a signal
// handler, or between fork and exec. What another library calls before that is found at its first use.
//
// Thread-safety: any thread.
#pragma once

#include <atomic>

#include <dlfcn.h>

namespace verbena::verbs {

template <class Function>
class LibcNext {
 public:
  // `version`: of a call that today's libc keeps for old programs only; null for any other.
  constexpr explicit LibcNext(const char* name, const char* version = nullptr) noexcept
      : name_(name), version_(version) {}

  // Requires: libc has it; a program that calls it was linked with one that does.
  Function* get() noexcept {
    // Two threads may both look it up; they find the same. Nothing else is published with it.
    void* found = found_.load(std::memory_order_relaxed);
    if (found == nullptr) {
      found = version_ == nullptr ? ::dlsym(RTLD_NEXT, name_) : ::dlvsym(RTLD_NEXT, name_, version_);
      found_.store(found, std::memory_order_relaxed);
    }
    return reinterpret_cast<Function*>(found);
  }

 private:
  const char* name_;
  const char* version_;
  std::atomic<void*> found_{nullptr};
};

// For a constructor of the library.
template <class... Functions>
void find_all(LibcNext<Functions>&... calls) noexcept {
  (calls.get(), ...);
}

}  // namespace verbena::verbs
