// Events on their way to the program, and destroying what it still holds events of.
//
// ibv_destroy_cq(), _qp() and _srq() wait until every event that was taken has been acknowledged; those that nobody
// took are thrown away. So the object behind goes first, with which no new event can come, and what the program sees
// goes when the last acknowledgement is in.
#pragma once

#include <cstdint>

#include <pthread.h>

#include "device/event_channel.h"
#include "verbs/objects.h"

namespace verbena::verbs {

// For EventChannel::take(): counts the event on the object that it names.
void count_completion_event(const device::EventChannel::Record& record) noexcept;
void count_async_event(const device::EventChannel::Record& record) noexcept;

// Waits until `acknowledged`, which the mutex guards, has caught up with `taken`.
void wait_for_acknowledgements(pthread_mutex_t& mutex, pthread_cond_t& condition, const std::uint32_t& acknowledged,
                               const EventCount& taken) noexcept;

}  // namespace verbena::verbs
