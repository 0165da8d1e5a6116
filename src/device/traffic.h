// What a device counts beside its drops (base/drop.h): one row each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/counter.h"

namespace verbena::device {

enum class Traffic : std::uint8_t {
  kSentPackets,
  kSentBytes,
  kReceivedPackets,
  kReceivedBytes,
  kSentShared,
  kSentUdp,
  kHandedOver,
  kAhInUse,
  kEventsLost,
  kCount,
};

inline constexpr std::array<CounterRow, static_cast<std::size_t>(Traffic::kCount)> kTrafficRows{{
    {"sent_packets", "packets", Side::kSender, "Packets that queue pairs gave to the network."},
    {"sent_bytes", "bytes", Side::kSender, "Bytes of those, from the BTH to the pad."},
    {"received_packets", "packets", Side::kReceiver, "Packets that a queue pair accepted."},
    {"received_bytes", "bytes", Side::kReceiver, "Bytes of those, from the BTH to the pad."},
    {"sent_shared", "packets", Side::kSender, "Packets sent to a process of this host through shared memory."},
    {"sent_udp", "packets", Side::kSender, "Packets sent through UDP."},
    {"handed_over", "packets", Side::kReceiver, "Packets that UDP brought here for another process, handed to it."},
    {"ah_in_use", "address handles", Side::kSender,
     "Address handles destroyed while a posted send named them; looked for with VERBENA_STRICT=on."},
    {"events_lost", "events", Side::kBoth, "Asynchronous events kept from the program, as VERBENA_INJECT asks."},
}};

}  // namespace verbena::device
