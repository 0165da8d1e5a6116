// The memory of a counter page (host/counter_page.h): writable here, read only for whoever gets the descriptor.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

#include "base/counter.h"
#include "host/counter_page.h"
#include "transport/fd.h"
#include "transport/shm/shared_memory.h"
#include "verbena/result.h"

namespace verbena::transport {

// Thread-safety: any thread may call anything.
class CounterMemory {
 public:
  // Makes and maps the page, and names this process in it. What the system refused, as an error.
  static Result<std::unique_ptr<CounterMemory>> create();

  // As host::CounterPageWriter::add_block().
  Result<host::CounterBlock> add_block(std::string_view name, std::span<const CounterRow> rows);

  int fd() const noexcept { return memory_.fd.get(); }
  std::size_t bytes() const noexcept { return memory_.mapping.bytes().size(); }
  // In the child of a fork: the page is the parent's; blocks may no longer be touched.
  void abandon() noexcept;

 private:
  CounterMemory(SharedMemory memory, const host::CounterPageOwner& owner);

  SharedMemory memory_;
  std::mutex mutex_;  // guards writer_
  host::CounterPageWriter writer_;
};

}  // namespace verbena::transport
