// An asymmetric fence: next to nothing for those who read often, a system call for the one who frees rarely.
#pragma once

#include <atomic>

namespace verbena::ah {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
#else
inline constexpr bool kThreadSanitizer = false;
#endif

// Whether light fences may be compiler barriers; asks the kernel once.
bool has_membarrier() noexcept;

// The sender's side, between its store and its loads. ThreadSanitizer knows no stand-alone fence; it does not model the
// order in question either.
inline void light_fence(bool membarrier) noexcept {
  if (membarrier || kThreadSanitizer) {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return;
  }
#if !defined(__SANITIZE_THREAD__)
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// The other side, between its store and its loads: after it, each sender has either seen the store, or its own store to
// `activity` is visible here. False where the kernel refuses, now that it has agreed before (a filter of system calls,
// for one): then senders must begin to fence themselves, see Core::grace().
bool heavy_fence(bool membarrier) noexcept;

}  // namespace verbena::ah
