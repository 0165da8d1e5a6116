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
  kDuplicateRequests,
  kOutOfSequenceRequests,
  kRnrNaksSent,
  kRnrNaksReceived,
  kSequenceNaksReceived,
  kRetransmissions,
  kAckTimeouts,
  kRetriesExceeded,
  kRnrRetriesExceeded,
  kAcksSent,
  kCnpSent,
  kCnpHandled,
  kEcnMarked,
  kSentAgain,
  kKeptEarly,
  kSelectiveAcksSent,
  kSelectiveAcksReceived,
  kCount,
};

inline constexpr std::array<CounterRow, static_cast<std::size_t>(Traffic::kCount)> kTrafficRows{{
    {"sent_packets", "packets", Side::kSender,
     "Packets that queue pairs gave to the network; Ethernet frames of raw packet ones too."},
    {"sent_bytes", "bytes", Side::kSender, "Bytes of those, from the BTH to the pad; of Ethernet frames all."},
    {"received_packets", "packets", Side::kReceiver, "Packets that a queue pair accepted."},
    {"received_bytes", "bytes", Side::kReceiver, "Bytes of those, from the BTH to the pad; of Ethernet frames all."},
    {"sent_shared", "packets", Side::kSender, "Packets sent to a process of this host through shared memory."},
    {"sent_udp", "packets", Side::kSender, "Packets sent through UDP."},
    {"handed_over", "packets", Side::kReceiver, "Packets that UDP brought here for another process, handed to it."},
    {"ah_in_use", "address handles", Side::kSender,
     "Address handles destroyed while a posted send named them; looked for with VERBENA_STRICT=on."},
    {"events_lost", "events", Side::kBoth, "Asynchronous events kept from the program, as VERBENA_INJECT asks."},
    {"duplicate_requests", "packets", Side::kReceiver,
     "Requests on a connection that had been carried out before, and were answered again."},
    {"out_of_sequence_requests", "packets", Side::kReceiver,
     "Requests on a connection that came ahead of one that was lost."},
    {"rnr_naks_sent", "packets", Side::kReceiver, "Times the other end was told that no receive is posted."},
    {"rnr_naks_received", "packets", Side::kSender, "Times the other end had no receive posted."},
    {"sequence_naks_received", "packets", Side::kSender, "Times the other end said that a request was lost."},
    {"retransmissions", "times", Side::kSender, "Times a connection went back to send again."},
    {"ack_timeouts", "times", Side::kSender, "Times the other end did not answer within the local ACK timeout."},
    {"retries_exceeded", "connections", Side::kSender, "Connections lost because retry_cnt was used up."},
    {"rnr_retries_exceeded", "connections", Side::kSender, "Connections lost because rnr_retry was used up."},
    {"acks_sent", "packets", Side::kReceiver, "Acknowledgements and refusals that connections sent."},
    {"np_cnp_sent", "packets", Side::kReceiver,
     "Congestion notifications sent, since packets of a connection came with a mark of the network: one in 50 us at "
     "most for each connection."},
    {"rp_cnp_handled", "packets", Side::kSender, "Congestion notifications received that slowed a connection down."},
    {"np_ecn_marked_roce_packets", "packets", Side::kReceiver,
     "Packets that came with the ECN mark of a congested network (CE)."},
    {"packets_sent_again", "packets", Side::kSender, "Requests of connections that had been sent before."},
    {"early_requests_kept", "packets", Side::kReceiver,
     "Requests that came before one that was missing, and were kept until their turn: VERBENA_SELECTIVE_REPEAT."},
    {"selective_acks_sent", "packets", Side::kReceiver, "Times the other end was told which requests are kept."},
    {"selective_acks_received", "packets", Side::kSender,
     "Times the other end told which requests it has behind one that is missing."},
}};

}  // namespace verbena::device
