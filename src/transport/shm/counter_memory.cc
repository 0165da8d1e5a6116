#include "transport/shm/counter_memory.h"

#include <chrono>
#include <string>

#include <errno.h>
#include <unistd.h>

namespace verbena::transport {

Result<std::unique_ptr<CounterMemory>> CounterMemory::create() {
  auto memory = create_shared_memory("verbena-counters", host::kCounterPageBytes, OthersMay::kOnlyRead);
  if (!memory) return tl::make_unexpected(memory.error());
  const host::CounterPageOwner owner{
      .pid = static_cast<std::uint32_t>(::getpid()),
      .start_time_ns = std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count(),
      .process_name = program_invocation_short_name};
  return std::unique_ptr<CounterMemory>(new CounterMemory(std::move(*memory), owner));
}

CounterMemory::CounterMemory(SharedMemory memory, const host::CounterPageOwner& owner)
    : memory_(std::move(memory)), writer_(memory_.mapping.bytes(), owner) {}

Result<host::CounterBlock> CounterMemory::add_block(std::string_view name, std::span<const CounterRow> rows) {
  const std::lock_guard lock(mutex_);
  return writer_.add_block(name, rows);
}

void CounterMemory::abandon() noexcept {
  memory_.fd.reset();
  memory_.mapping.forget();
}

}  // namespace verbena::transport
