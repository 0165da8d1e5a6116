#include "device/event_channel.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/no_cancel.h"
#include "transport/system_error.h"

namespace verbena::device {
namespace {

using Image = std::array<std::byte, 16>;

// The kernel's struct ib_uverbs_comp_event_desc {u64} and ib_uverbs_async_event_desc {u64, u32, u32}: host order.
Image encode(const EventChannel::Record& record) noexcept {
  Image image{};
  std::memcpy(image.data(), &record.element, sizeof record.element);
  std::memcpy(image.data() + sizeof record.element, &record.type, sizeof record.type);
  return image;
}

EventChannel::Record decode(const Image& image) noexcept {
  EventChannel::Record record;
  std::memcpy(&record.element, image.data(), sizeof record.element);
  std::memcpy(&record.type, image.data() + sizeof record.element, sizeof record.type);
  return record;
}

}  // namespace

Result<std::unique_ptr<EventChannel>> EventChannel::open(Form form) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    const int error = errno;
    return failure(ErrorCode::kExhausted,
                   fmt::format("no descriptors for an event channel: {}", transport::system_words(error)), error);
  }
  return std::unique_ptr<EventChannel>(new EventChannel(form, ends[0], ends[1]));
}

EventChannel::~EventChannel() {
  close(reader_);
  close(writer_);
}

bool EventChannel::write_record(const Record& record) noexcept {
  const transport::NoCancel guard;
  const Image image = encode(record);
  return send(writer_, image.data(), static_cast<std::size_t>(form_), MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

bool EventChannel::read_record(Record& record) noexcept {
  const transport::NoCancel guard;
  Image image{};
  if (recv(reader_, image.data(), static_cast<std::size_t>(form_), MSG_DONTWAIT) <= 0) return false;
  record = decode(image);
  return true;
}

void EventChannel::refill() noexcept {
  while (!waiting_.empty() && write_record(waiting_.front())) waiting_.pop_front();
}

void EventChannel::push(const Record& record) noexcept {
  const std::lock_guard guard(mutex_);
  if (waiting_.empty() && write_record(record)) return;
  waiting_.push_back(record);
  refill();  // a program that reads the descriptor itself may have made room
}

int EventChannel::take(Record& record, void (*taken)(const Record&)) noexcept {
  for (;;) {
    {
      const std::lock_guard guard(mutex_);
      if (read_record(record)) {
        refill();
        taken(record);
        return 0;
      }
    }
    std::byte probe{};  // waits as the descriptor's own flags and the signal handlers' SA_RESTART say
    if (recv(reader_, &probe, sizeof probe, MSG_PEEK) < 0) return errno;
  }
}

void EventChannel::purge(std::uint64_t element) noexcept {
  const std::lock_guard guard(mutex_);
  std::vector<Record> kept;
  Record record;
  for (;;) {
    refill();
    if (!read_record(record)) break;
    if (record.element != element) kept.push_back(record);
  }
  waiting_.assign(kept.begin(), kept.end());
  refill();
}

}  // namespace verbena::device
