#include "device/context.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include "device/clock.h"
#include "device/demand_paging.h"
#include "device/log.h"
#include "device/queue_pair.h"
#include "device/rcu.h"

namespace verbena::device {
namespace {

engine::KeySeed random_seed() noexcept {
  engine::KeySeed seed{};
  auto* at = reinterpret_cast<char*>(&seed);
  std::size_t done = 0;
  while (done < sizeof seed) {
    const auto got = getrandom(at + done, sizeof seed - done, 0);
    if (got > 0) done += static_cast<std::size_t>(got);
  }
  return seed;
}

// Too short for the scheduler: waited out on the processor.
constexpr Duration kShortWait = std::chrono::microseconds(60);

void pass(Duration span) {
  if (span > kShortWait) {
    std::this_thread::sleep_for(span);
    return;
  }
  for (const Instant end = now() + span; now() < end;) continue;
}

std::uint32_t sum_of(std::uint32_t a, std::uint32_t b) noexcept {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{a} + b, UINT32_MAX));
}

}  // namespace

Result<std::shared_ptr<Context>> Context::open(const Device& device) {
  auto runtime = Runtime::acquire();
  if (!runtime) {
    log(Severity::kError, runtime.error().message);
    return tl::make_unexpected(runtime.error());
  }
  auto ports = (*runtime)->open_ports(device);
  if (!ports) {
    log(Severity::kError, fmt::format("{}: {}", device.name(), ports.error().message));
    return tl::make_unexpected(ports.error());
  }
  auto events = EventChannel::open(EventChannel::Form::kAsync);
  if (!events) {
    log(Severity::kError, fmt::format("{}: {}", device.name(), events.error().message));
    return tl::make_unexpected(events.error());
  }
  return std::shared_ptr<Context>(new Context(std::move(*runtime), std::move(*ports), std::move(*events)));
}

Context::Context(std::shared_ptr<Runtime> runtime, std::vector<Port*> ports, std::unique_ptr<EventChannel> events)
    : runtime_(std::move(runtime)),
      ports_(std::move(ports)),
      limits_(runtime_->settings().limits),
      async_events_(std::move(events)),
      memory_(sum_of(limits_.max_mr, limits_.max_mw), random_seed(), &demand_pager()),
      variants_(random_seed()) {
  for (Port* const port : ports_) port->attach(*this);
}

Context::~Context() {
  close();
  if (!alive()) return;
  for (Port* const port : ports_) port->detach(*this);
}

void Context::close() noexcept {
  if (!alive() || closed_.exchange(true, std::memory_order_relaxed)) return;
  const std::lock_guard guard(mutex_);
  const auto kept = std::partition(queue_pairs_.begin(), queue_pairs_.end(),
                                   [this](const QueuePair* queue_pair) { return queue_pair->serves_others(*this); });
  std::for_each(kept, queue_pairs_.end(), [](QueuePair* queue_pair) { queue_pair->disconnect(); });
  wait_for_readers();  // also of those that deliver into what it lends to others
  queue_pairs_.erase(kept, queue_pairs_.end());
}

void Context::on_port_event(const Port& port, PortEvent event) noexcept {
  if (closed()) return;
  if (runtime_->injection().loses_event()) {
    counters().add(Traffic::kEventsLost, 1);
    return;
  }
  async_events_->push({port.number(), static_cast<std::uint32_t>(event)});
}

void Context::on_mtu(const Port& port, std::uint32_t bytes) noexcept {
  const std::lock_guard guard(mutex_);
  for (auto* queue_pair : queue_pairs_) queue_pair->set_mtu(port, bytes);
}

int Context::refuse_child() noexcept {
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) {
    // Not by the log: another thread of the parent may have held its lock.
    constexpr std::string_view kSentence =
        "verbena: this process is the child of a fork and uses an RDMA device that its parent opened; refused. Open "
        "the "
        "device again here with ibv_open_device()\n";
    [[maybe_unused]] const auto written = write(STDERR_FILENO, kSentence.data(), kSentence.size());
  }
  errno = ENODEV;  // for calls whose manual speaks of errno, though they return it too
  return ENODEV;
}

Result<MemoryKey> Context::add_region(engine::MemoryRegion& region) {
  const std::lock_guard guard(memory_mutex_);
  return memory_.insert(region);
}

Status Context::check_unbound(const engine::MemoryRegion& region) {
  if (region.bound_windows == 0) return {};
  return failure(
      ErrorCode::kBusy,
      fmt::format("{}: memory region {:#x} has {} memory window(s) bound to it: invalidate or unbind them, or "
                  "deallocate them, first",
                  device().name(), region.key.value(), region.bound_windows),
      EBUSY);
}

Status Context::remove_region(const engine::MemoryRegion& region) {
  {
    const std::lock_guard guard(memory_mutex_);
    if (auto unbound = check_unbound(region); !unbound) return unbound;
    memory_.remove(region.key);
  }
  wait_for_readers();
  return {};
}

Status Context::replace_region(const engine::MemoryRegion& old, engine::MemoryRegion& region) {
  {
    const std::lock_guard guard(memory_mutex_);
    if (auto unbound = check_unbound(old); !unbound) return unbound;
    memory_.replace(old, region);
  }
  wait_for_readers();
  return {};
}

Result<MemoryKey> Context::add_window(engine::MemoryWindow& window) {
  const std::lock_guard guard(memory_mutex_);
  windows_.insert(&window);
  auto key = memory_.insert(window);
  if (!key) windows_.erase(&window);
  return key;
}

void Context::remove_window(engine::MemoryWindow& window) noexcept {
  {
    const std::lock_guard guard(memory_mutex_);
    memory_.remove(window);
    windows_.erase(&window);
  }
  wait_for_readers();
}

engine::MemoryFault Context::bind(const engine::BindRequest& request) noexcept {
  const std::lock_guard guard(memory_mutex_);
  return memory_.bind(request);
}

engine::MemoryFault Context::invalidate(const engine::ProtectionDomain& domain, MemoryKey key, Qpn by) noexcept {
  const std::lock_guard guard(memory_mutex_);
  return memory_.invalidate(domain, key, by);
}

void Context::free_windows_of(Qpn qpn) noexcept {
  const std::lock_guard guard(memory_mutex_);
  for (engine::MemoryWindow* const window : windows_) {
    if (window->bound_by(qpn)) window->unbind();
  }
}

MemoryKey Context::next_variant(MemoryKey key) noexcept {
  const std::lock_guard guard(memory_mutex_);
  const std::uint32_t step = 1 + static_cast<std::uint32_t>(variants_.next() % 255);
  return MemoryKey((key.value() & ~0xffU) | ((key.value() + step) & 0xff));
}

bool Context::take_device_memory(std::uint64_t bytes) noexcept {
  std::uint64_t used = device_memory_.load(std::memory_order_relaxed);
  do {
    if (bytes > limits_.max_dm_size - used) return false;
  } while (!device_memory_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

Status Context::enter(ObjectKind kind) {
  const ObjectRow& row = row_of(kind);
  const Injection::Verdict verdict = runtime_->injection().on_call(kind);
  if (verdict.delay != Duration{0}) pass(verdict.delay);
  if (verdict.error != 0) {
    return failure(ErrorCode::kExhausted,
                   fmt::format("{}: {} fails on purpose (VERBENA_INJECT)", device().name(), row.call), verdict.error);
  }
  auto& number = objects_[static_cast<std::size_t>(kind)];
  const std::uint32_t limit = limits_.*row.limit;
  if (number.fetch_add(1, std::memory_order_relaxed) >= limit) {
    number.fetch_sub(1, std::memory_order_relaxed);
    return failure(ErrorCode::kExhausted, fmt::format("{}: all {} {} are in use", device().name(), limit, row.words),
                   ENOMEM);
  }
  counters().add(kind);
  return {};
}

void Context::leave(ObjectKind kind) noexcept {
  objects_[static_cast<std::size_t>(kind)].fetch_sub(1, std::memory_order_relaxed);
  if (alive()) counters().remove(kind);
}

void Context::check_unused(const engine::AddressHandle& handle) noexcept {
  if (!runtime_->settings().strict || !alive()) return;
  // Forgotten by all: a later address handle at this place in memory is another.
  std::string named_by;
  {
    const std::lock_guard guard(mutex_);
    for (auto* queue_pair : queue_pairs_) {
      const std::size_t sends = queue_pair->forget_address(handle);
      if (sends == 0) continue;
      named_by += fmt::format("{}{} posted send(s) of queue pair {:#x}", named_by.empty() ? "" : " and ", sends,
                              queue_pair->qpn().value());
    }
  }
  if (named_by.empty()) return;
  counters().add(Traffic::kAhInUse, 1);
  log_once(Severity::kError,
           fmt::format("{}: an address handle to {} was destroyed while {} named it: poll their completion first",
                       device().name(), to_string(handle.vector.destination), named_by));
}

void Context::enlist(QueuePair& queue_pair) {
  const std::lock_guard guard(mutex_);
  queue_pairs_.push_back(&queue_pair);
}

void Context::discharge(QueuePair& queue_pair) noexcept {
  const std::lock_guard guard(mutex_);
  const auto found = std::find(queue_pairs_.begin(), queue_pairs_.end(), &queue_pair);
  if (found == queue_pairs_.end()) return;
  *found = queue_pairs_.back();
  queue_pairs_.pop_back();
}

}  // namespace verbena::device
