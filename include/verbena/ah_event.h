// What happened to the destinations of a directory, for an application that wants to know. Nothing must be done about
// it: what can be put right is put right.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "verbena/destination.h"
#include "verbena/export.h"

namespace verbena {

// Why an address handle was put in doubt, or given back.
enum class AhCause : std::uint8_t {
  kNone,           // nobody but the application
  kGid,            // its source GID has moved in the table, or is gone
  kLid,            // IBV_EVENT_LID_CHANGE
  kPort,           // the port went down or came up
  kPkey,           // IBV_EVENT_PKEY_CHANGE
  kSubnetManager,  // IBV_EVENT_SM_CHANGE
  kReregister,     // IBV_EVENT_CLIENT_REREGISTER
  kDevice,         // IBV_EVENT_DEVICE_FATAL
  kNeighbour,      // the next hop has another MAC address, or does not answer
  kAddress,        // an address of this host came or went
  kRoute,          // the route leads elsewhere
  kLink,           // the interface changed
  kNoticesLost,    // the kernel could not tell what changed
  kAge,            // older than max_age, or its neighbour is no longer watched by the kernel
  kIdle,           // unused for idle_age
  kPressure,       // room was needed in its own directory, or in another of its tenant
  kShare,          // room was needed by another tenant, and its own was over its share
};

// "gid", "neighbour": also the end of the names of counts.
VERBENA_API const char* to_string(AhCause cause) noexcept;

struct AhEvent {
  enum class Kind : std::uint8_t {
    kReady,      // look-ups find it
    kStale,      // its address is in doubt; it serves until the replacement is there
    kReplaced,   // the replacement is there
    kFailed,     // an attempt failed; `error` says why
    kGone,       // look-ups find nothing until it is ready again
    kRecovered,  // ready again after failures
    kEvicted,    // given back; ask for it again
    kDropped,    // `count` events before this one were not delivered: the subscriber is too slow
  };

  Kind kind = Kind::kReady;
  AhCause cause = AhCause::kNone;
  Destination destination;       // as asked for; nothing where kDropped
  std::uint64_t generation = 0;  // how often its address was replaced
  std::uint64_t count = 0;       // kDropped only
  std::string error;             // kFailed only
  std::chrono::steady_clock::time_point when;
};

VERBENA_API const char* to_string(AhEvent::Kind kind) noexcept;

// Called on a thread of the directory that does nothing else, one event at a time, in the order in which things
// happened. It may call the directory and take its time: events wait, and are dropped and counted beyond a few
// thousand.
using AhSubscriber = std::function<void(const AhEvent&)>;

}  // namespace verbena
