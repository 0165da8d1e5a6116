// What an XRC receive queue pair delivers into. It has neither protection domain nor completion queue of its own: each
// request names a shared receive queue, and all of that comes from the queue (InfiniBand Architecture volume 1, annex
// A14).
#pragma once

#include <cstdint>

#include "engine/completion.h"
#include "engine/memory_table.h"
#include "engine/memory_window.h"
#include "engine/protection_domain.h"
#include "engine/shared_receive_queue.h"

namespace verbena::engine {

// Whose memory a request may touch.
struct Reach {
  const ProtectionDomain* domain = nullptr;
  const MemoryTable* memory = nullptr;
  WindowBinder* windows = nullptr;  // nullptr: no memory windows
};

// One shared receive queue of an XRC domain.
struct XrcTarget {
  Reach reach;
  ReceiveSource* receives = nullptr;
  CompletionSink* completions = nullptr;
  std::uint64_t identity = 0;  // of no other queue, also not of a later one with the same number
};

// The shared receive queues of an XRC domain, by number.
//
// Thread-safety: any thread.
// Ownership:     what find() gives may go as soon as the caller's call into the engine returns: it is never kept.
class XrcDirectory {
 public:
  // False where the domain has no such queue; `target` is then as it was.
  virtual bool find(std::uint32_t number, XrcTarget& target) const noexcept = 0;

 protected:
  ~XrcDirectory() = default;
};

}  // namespace verbena::engine
