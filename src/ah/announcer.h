// Calls the application back: subscribers of events, and tickets that are ready. On a thread of its own, so that what
// the application does there holds up nothing, and may ask the directory again.
//
// The thread is made when there is something to call for the first time. Events wait in a bounded line; what does not
// fit is counted, and the count delivered in its place: before the next event, or when the line has emptied. Calls of
// tickets are never dropped: there is one for each request.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "verbena/ah_event.h"

namespace verbena::ah {

// Thread-safety: any thread; stop() by one.
// Ownership:     owns its thread.
// Errors:        subscribe() and prepare() throw std::system_error where no thread can be made.
class Announcer {
 public:
  using Ticket = std::uint64_t;
  static constexpr std::size_t kMostWaiting = 4096;
  // How long stop() goes on with the events that wait; what is left then is dropped, and counted like the rest.
  static constexpr auto kStopPatience = std::chrono::milliseconds(100);

  Announcer() = default;
  Announcer(const Announcer&) = delete;
  Announcer& operator=(const Announcer&) = delete;
  ~Announcer() { stop(); }

  // Whether anybody listens: an event that nobody hears need not be made. One relaxed load.
  bool has_subscribers() const noexcept { return subscribed_.load(std::memory_order_relaxed); }
  Ticket subscribe(AhSubscriber subscriber);
  // When it returns, the subscriber is not running and will not run again; called by the subscriber itself, it will not
  // run again.
  void unsubscribe(Ticket ticket);

  void announce(AhEvent event);
  // Makes the thread, for a call() to come.
  void prepare();
  // Requires: prepare() before it. After stop(): at once, on the thread of the caller.
  void call(std::function<void()> what);

  // Delivers what is there (events for kStopPatience at most, all calls), then ends the thread. Not from a subscriber
  // or a call.
  void stop();

 private:
  void start();  // Requires: mutex_
  void run();
  void deliver(std::unique_lock<std::mutex>& lock);
  void add_gap(std::chrono::steady_clock::time_point when);  // Requires: mutex_; where events were dropped
  void drop_events();                                        // Requires: mutex_

  struct Waiting {
    AhEvent event;
    std::function<void()> call;  // not empty: this, and no event
  };

  std::atomic<bool> subscribed_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable delivered_;
  // Guarded by mutex_, all below.
  std::map<Ticket, std::shared_ptr<const AhSubscriber>> subscribers_;
  std::deque<Waiting> waiting_;
  std::size_t events_waiting_ = 0;
  std::uint64_t dropped_ = 0;
  Ticket next_ = 1;
  std::uint64_t deliveries_ = 0;
  bool delivering_ = false;
  bool stopping_ = false;
  std::chrono::steady_clock::time_point stop_by_;  // once stopping_
  std::thread::id thread_id_;                      // of what delivers, also while stop() waits for it
  std::thread thread_;
};

}  // namespace verbena::ah
