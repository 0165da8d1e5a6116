// Who is told what happens to an object: one program's handle, or, of an XRC receive queue pair, each of those who made
// or opened it.
//
// Thread-safety: any thread.
// Ownership:     keeps the contexts alive.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "device/context.h"

namespace verbena::device {

class EventListeners {
 public:
  // `element` names the handle in events of `context`. Throws std::bad_alloc.
  void add(Context& context, std::uint64_t element);
  // Nothing more is told to it, and what it has not taken is thrown away.
  void remove(std::uint64_t element) noexcept;
  void remove_all() noexcept;
  void tell(std::uint32_t type) noexcept;
  // Whether an open context other than that one hears of it.
  bool has_other(const Context& context) const noexcept;

 private:
  using Listener = std::pair<std::shared_ptr<Context>, std::uint64_t>;

  mutable std::mutex mutex_;
  std::vector<Listener> all_;  // guarded by mutex_
};

}  // namespace verbena::device
