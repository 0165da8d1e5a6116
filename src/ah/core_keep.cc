// The keeper: what happens in the background, and how a directory closes.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <pthread.h>

#include "ah/core.h"
#include "verbena/release_failure.h"
#include "verbena/verbs_object.h"

namespace verbena::ah {

namespace {

// While something retired waits for its last work request, or something failed for its next try.
constexpr std::int64_t kShortest_ns = 1'000'000;
constexpr std::int64_t kLongest_ns = 100'000'000;
constexpr auto kCloseStep = std::chrono::milliseconds(1);

}  // namespace

void Core::poke_keeper() {
  {
    const std::lock_guard lock(keeper_mutex_);
    keeper_poked_ = true;
  }
  keeper_wake_.notify_one();
}

void Core::keep() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  pthread_setname_np(pthread_self(), "verbena-keep");
  std::int64_t pause = kNever;
  std::int64_t step = kShortest_ns;
  Lock lock(keeper_mutex_);
  for (;;) {
    const auto woken = [this] { return keeper_poked_ || keeper_ends_; };
    if (pause == kNever) {
      keeper_wake_.wait(lock, woken);
    } else {
      keeper_wake_.wait_for(lock, std::chrono::nanoseconds(pause), woken);
    }
    if (keeper_ends_) return;
    const bool poked = std::exchange(keeper_poked_, false);
    lock.unlock();
    const std::int64_t wanted = tick();
    step = poked ? kShortest_ns : std::min(2 * step, kLongest_ns);
    pause = wanted == 0 ? step : wanted;
    lock.lock();
  }
}

// 0: soon again, there is something to wait for.
std::int64_t Core::tick() {
  {
    const Lock lock(mutex_);
    const std::int64_t now = now_ns();
    reclaim_aged(now);
    refresh_aged(now);
    retry_failed(now);
    if (now >= next_revalidate_ns_) {
      next_revalidate_ns_ = kNever;
      gids_.invalidate();
      queue_revalidate(std::exchange(revalidate_failures_later_, false) ? Revalidate::kFailures : Revalidate::kEntries);
    }
    if (now >= next_look_ns_) queue_look(now);
    if (now >= next_own_ns_) {
      next_own_ns_ = kNever;
      pool_.submit(Lane::kUrgent, [this] { look_at_table(); });
    }
  }
  sweep();
  const Lock lock(mutex_);
  if (!retired_.empty()) return 0;
  const std::int64_t next =
      std::min({next_aged_scan_ns_, next_retry_ns_, next_due_ns_, next_revalidate_ns_, next_look_ns_, next_own_ns_});
  return next == kNever ? kNever : std::max(next - now_ns(), kShortest_ns);
}

void Core::reclaim_aged(std::int64_t now) {
  const std::int64_t age = options_.idle_age.count();
  if (closed_ || age <= 0 || (free_slots_.size() == max_entries_ && unwell_ == 0)) {
    next_aged_scan_ns_ = kNever;
    return;
  }
  if (next_aged_scan_ns_ != kNever && now < next_aged_scan_ns_) return;
  counts_.reclaimed_idle += reclaim(max_entries_, now - age, AhCause::kIdle);
  if (unwell_ != 0) forget_unasked(now);
  next_aged_scan_ns_ = now + age / 4;
}

// What failed, and was not asked for during idle_age although it might have been tried again.
void Core::forget_unasked(std::int64_t now) {
  std::vector<Binding*> going;
  table_.for_each([&](Binding& binding) {
    if (!binding.trouble || !is_unheld(binding) || is_wanted(binding, now)) return;
    if (now - binding.trouble->retry_at_ns >= options_.idle_age.count()) going.push_back(&binding);
  });
  for (Binding* binding : going) forget(*binding);
}

void Core::refresh_aged(std::int64_t now) {
  if (now < next_due_ns_) return;
  next_due_ns_ = kNever;
  note_activity(now);
  const std::int64_t age = options_.idle_age.count();
  for (Entry* entry : by_slot_) {
    if (entry == nullptr || entry->state != EntryState::kReady) continue;
    const std::int64_t due = due_ns_of(*entry);
    if (due <= now) {
      entry->aged = true;  // its replacement has a due time of its own
      if (age > 0 && entry->active_ns() <= now - age && is_unused(*entry)) {
        evict(*entry, AhCause::kIdle);
        ++counts_.reclaimed_idle;
      } else {
        refresh(*entry, AhCause::kAge);
      }
    } else {
      next_due_ns_ = std::min(next_due_ns_, due);
    }
  }
}

// Somebody holds it, or it still serves with a stale address, or it lost the address it had; the last for as long as an
// unused destination is kept.
bool Core::is_wanted(const Binding& binding, std::int64_t now) const {
  if (binding.handles.load(std::memory_order_relaxed) != 0) return true;
  if (binding.entry.load(std::memory_order_relaxed) != nullptr) return true;
  const std::int64_t age = options_.idle_age.count();
  return binding.generation != 0 && binding.trouble && (age <= 0 || now - binding.trouble->since_ns < age);
}

void Core::retry_failed(std::int64_t now) {
  next_retry_ns_ = kNever;
  if (closed_ || device_gone_ || unwell_ == 0) return;
  table_.for_each([&](Binding& binding) {
    if (!binding.trouble || binding.attempt || !is_wanted(binding, now)) return;
    if (binding.trouble->unasked_at_ns <= now) {
      start_attempt(binding, lane_of(binding), binding.cause);
    } else {
      next_retry_ns_ = std::min(next_retry_ns_, binding.trouble->unasked_at_ns);
    }
  });
}

Core::Visit::Visit(const Core& core) : core_(core) {
  const Lock lock(core.mutex_);
  open_ = !core.closed_;
  if (open_) ++core.visits_;
}

Core::Visit::~Visit() {
  if (!open_) return;
  const Lock lock(core_.mutex_);
  --core_.visits_;
}

// The watcher of events reads the device until the last of its directories leaves it.
void Core::stop_listening() {
  std::shared_ptr<rdma::EventWatcher> watcher;
  std::shared_ptr<NetworkWatcher> network;
  {
    const Lock lock(mutex_);
    ++visits_;
    watcher = std::exchange(watcher_, nullptr);
    network = std::exchange(network_, nullptr);
  }
  if (watcher) watcher->unsubscribe(watch_);
  watcher.reset();
  if (network) network->unsubscribe(network_watch_);
  network.reset();
  const Lock lock(mutex_);
  --visits_;
}

bool Core::has_calls_under_way() {
  return visits_ != 0 || !pool_.wait_idle(Deadline::at({}));
}

AhLeftover Core::close(Deadline deadline) {
  {
    const Lock lock(mutex_);
    closed_ = true;
    table_.for_each([this](Binding& binding) {
      if (binding.attempt) binding.attempt->finish(unavailable());
      unlink(binding);
    });
  }
  room_.notify_all();
  stop_listening();
  pool_.stop();
  pool_.wait_idle(deadline);
  for (;;) {
    sweep();
    Lock lock(mutex_);
    const bool empty = free_slots_.size() == max_entries_ && visits_ == 0;
    if (empty || deadline.passed()) break;
    room_.wait_for(lock, kCloseStep);
  }
  AhLeftover left = leftover();
  if (left.rows.empty() && !left.calls_under_way) leave_arbiter();
  return left;
}

// From then on the context may go: a later one at its address has nothing to do with this.
void Core::leave_arbiter() {
  arbiter_->leave(this);
  std::shared_ptr<const Seat> seat;
  const Lock lock(mutex_);
  seat.swap(seat_);
}

// The last one deallocates the domain when it goes, and may tell the application that the device refuses: without a
// lock, since the application may drop what it has of this then.
void Core::let_go_of_domain() {
  Keeper keeper;
  const std::lock_guard sweeping(sweep_mutex_);
  const Lock lock(mutex_);
  if (closed_ && free_slots_.size() == max_entries_ && !has_calls_under_way()) keeper.swap(domain_keeper_);
}

void Core::shut_down() {
  close(Deadline::in(std::chrono::duration_cast<Deadline::Clock::duration>(options_.close_grace)));
  pool_.join();
  {
    const std::lock_guard lock(keeper_mutex_);
    keeper_ends_ = true;
  }
  keeper_wake_.notify_one();
  if (keeper_.joinable()) keeper_.join();
  announcer_.stop();
  sweep();
  if (report_server_) report_server_->remove(shown_);  // after the close: these are its last values
  report_server_.reset();
  leave_arbiter();
  let_go_of_domain();  // handles, and others who were asking it for room, may keep the Core for a while
  AhLeftover left = leftover();
  std::erase_if(left.held, [this](const AhHolding& one) { return !one.lease && one.held < options_.leak_age; });
  if (left.rows.empty() && left.held.empty()) return;
  detail::report_release_failure(
      {ErrorCode::kBusy, 0,
       fmt::format("address directory of {} ends: {}; drop handles and leases, and complete or destroy queue pairs, "
                   "before the directory",
                   name_, in_words(left))});
}

}  // namespace verbena::ah
