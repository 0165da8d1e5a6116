// When a work request gives its place in its queue back: once its completion has been polled, or that of a later
// request of the same queue (InfiniBand Architecture volume 1, section 10.8.5). An unsignaled send keeps its place
// until then. So a completion queue that is as long as the queues that feed it is never overrun, and a program that
// posts until ENOMEM and then polls runs here as on hardware.
#pragma once

#include <atomic>
#include <cstdint>

namespace verbena::engine {

// Written by who polls, under the lock of the completion queue; read by who posts. Relaxed: it guards no other memory.
struct alignas(64) GivenBack {
  std::atomic<std::uint64_t> position{0};  // all places before it are free
};

// What a completion gives back when it is polled. The queue pair outlives it: destroying or resetting a queue pair
// takes its completions out first.
struct Place {
  GivenBack* queue = nullptr;  // nullptr: nothing
  std::uint64_t end = 0;

  void give_back() const noexcept {
    if (queue != nullptr) queue->position.store(end, std::memory_order_relaxed);
  }
};

}  // namespace verbena::engine
