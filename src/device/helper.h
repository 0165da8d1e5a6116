// The helper thread: takes over when the application does not poll, and looks after what comes by descriptor.
//
// While the application polls (WATCHING), no peer rings a doorbell; the helper wakes once a tick to see whether the
// polling goes on, and otherwise only for peers and rtnetlink. When polling stops, or a completion queue is armed
// (HELPING), it asks for doorbells and sleeps without a time-out until a packet, a peer, rtnetlink or a timer wakes it.
//
//              kPollsToWatch empty polls              no poll during a tick, or a queue was armed
//   HELPING ─────────────────────────────> WATCHING  ─────────────────────────────────────────────> HELPING
//
// Thread-safety: the calls from outside: any thread.
// Ownership:     owns its thread and its epoll descriptors; keeps a reference to the runtime.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>

#include "base/instant.h"
#include "transport/fd.h"
#include "verbena/result.h"

namespace verbena::device {

// What the helper thread does for its owner. Called by the helper thread alone.
class HelperWork {
 public:
  virtual void serve_control() noexcept = 0;  // peers, rtnetlink, overrun queues: whatever waits
  virtual bool arm_doorbells() noexcept = 0;  // false: something is there already
  virtual bool held_back() noexcept = 0;      // packets wait for their readers, not for us
  virtual void disarm_doorbells() noexcept = 0;
  virtual bool take_in() noexcept = 0;  // packets and timers; true where there may be more
  virtual std::optional<Instant> next_timeout() noexcept = 0;
  virtual Duration tick() noexcept = 0;  // how long to look away while the application polls
  virtual void relieve() noexcept = 0;   // the end of a tick: what cannot wait for the application

 protected:
  ~HelperWork() = default;
};

class Helper {
 public:
  explicit Helper(HelperWork& work) noexcept : work_(work) {}
  ~Helper() { stop(); }

  Status start();
  void stop() noexcept;

  // Descriptors to wait for: for control always, for packets only while HELPING.
  Status add_control(int fd);
  Status add_packets(int fd);
  void remove_packets(int fd) noexcept;

  // A poll found nothing. Cheap.
  void on_empty_poll() noexcept {
    if (watching_.load(std::memory_order_relaxed)) {
      if (!polled_.load(std::memory_order_relaxed)) polled_.store(true, std::memory_order_relaxed);
      return;
    }
    if (empty_polls_.fetch_add(1, std::memory_order_relaxed) >= kPollsToWatch) begin_watching();
  }
  bool watching() const noexcept { return watching_.load(std::memory_order_relaxed); }
  void on_arm() noexcept;
  void wake() noexcept;

  void abandon() noexcept;  // in the child of a fork

 private:
  static constexpr unsigned kPollsToWatch = 1000;

  void run() noexcept;
  void help() noexcept;
  void watch() noexcept;
  void wait(int epoll, std::int64_t timeout_ns) noexcept;  // below 0: without a time-out
  void begin_watching() noexcept;

  HelperWork& work_;
  transport::Fd control_epoll_;
  transport::Fd all_epoll_;  // control_epoll_ and the packets
  transport::Fd wake_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  // Hints between the application's threads and the helper's; relaxed: a stale one costs a tick, and wake() follows
  // each change that must not wait.
  std::atomic<bool> watching_{false};
  std::atomic<bool> polled_{false};
  std::atomic<unsigned> empty_polls_{0};
};

}  // namespace verbena::device
