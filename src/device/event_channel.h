// Events on their way to the application: the descriptor behind an ibv_comp_channel or a context's async_fd.
//
// The descriptor is one end of a socket pair, so that poll, epoll, select, O_NONBLOCK and a plain read() all behave as
// with the kernel's: one record a read, in the kernel's layout. What the socket cannot hold waits in memory and
// follows as records are taken.
//
// Thread-safety: all calls from any thread. take() may sleep; it holds no lock while it does.
// Ownership:     owns both descriptors.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "verbena/result.h"

namespace verbena::device {

class EventChannel {
 public:
  enum class Form : std::uint8_t { kCompletion = 8, kAsync = 16 };  // bytes a record, as the kernel's ABI has them

  struct Record {
    std::uint64_t element = 0;  // the caller's name for the object, or a port number
    std::uint32_t type = 0;     // enum ibv_event_type; not carried by Form::kCompletion
  };

  static Result<std::unique_ptr<EventChannel>> open(Form form);
  ~EventChannel();
  EventChannel(const EventChannel&) = delete;
  EventChannel& operator=(const EventChannel&) = delete;

  // What the application polls and reads; its flags are the application's.
  int fd() const noexcept { return reader_; }

  void push(const Record& record) noexcept;

  // Waits for a record as the descriptor's flags say. `taken` runs before any purge() can see the record as gone.
  // Returns 0, or the errno of the wait (EAGAIN where O_NONBLOCK is set and nothing is there).
  int take(Record& record, void (*taken)(const Record&)) noexcept;

  // Throws away what is still waiting for `element`; after it, no take() returns one.
  void purge(std::uint64_t element) noexcept;

 private:
  EventChannel(Form form, int reader, int writer) : form_(form), reader_(reader), writer_(writer) {}
  bool write_record(const Record& record) noexcept;
  bool read_record(Record& record) noexcept;
  void refill() noexcept;

  const Form form_;
  const int reader_;
  const int writer_;
  std::mutex mutex_;
  std::deque<Record> waiting_;  // behind what the socket holds; guarded by mutex_
};

}  // namespace verbena::device
