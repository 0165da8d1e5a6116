// Every way in which a datagram can vanish, at either end. Each has a counter of the same name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/counter.h"

namespace verbena {

enum class Drop : std::uint8_t {
  kNone,  // delivered; never counted
  // The receiver could not read it.
  kTruncated,
  kBadTransportVersion,
  kBadPadCount,
  kUnknownOpcode,
  kIcrcMismatch,
  kPayloadTooLong,
  // The receiver has nobody for it.
  kUnknownDestination,
  kWrongPort,
  kUnknownLid,
  kLidNotOfSource,
  kGidNotOfLid,
  kUnknownQpn,
  kNotAttached,
  kHandOverFailed,
  // The queue pair refuses it.
  kBadQpState,
  kOpcodeNotForQp,
  kPkeyMismatch,
  kQkeyMismatch,
  kNoReceiveRequest,
  kReceiveTooSmall,
  kReceiveProtection,
  kFrameTooLong,
  kFrameCoalesced,
  kDroppedByFlow,
  kNotThePeer,
  kOutOfSequence,
  kDuplicateRequest,
  kInvalidRequest,
  kUnknownSharedQueue,
  kRemoteAccess,
  kUnexpectedResponse,
  kBadSyndrome,
  kCqOverrun,
  // The receiving host lost it.
  kSocketOverflow,
  kRingBroken,
  // The sender could not send it.
  kNoRoute,
  kUdpNotOpen,
  kPeerGone,
  kPeerStalled,
  kPortDown,
  kSocketError,
  kDatagramTooLong,
  // The impairment that the user asked for.
  kImpairLoss,
  kImpairOverflow,
  kCount,
};

inline constexpr std::size_t kDropCount = static_cast<std::size_t>(Drop::kCount);

inline constexpr std::array<CounterRow, kDropCount> kDropRows{{
    {"none", "packets", Side::kBoth, "Not a drop."},
    {"truncated", "packets", Side::kReceiver, "Shorter than the headers its opcode calls for."},
    {"bad_transport_version", "packets", Side::kReceiver, "BTH transport version other than 0."},
    {"bad_pad_count", "packets", Side::kReceiver,
     "Pad count that does not make the payload a multiple of four bytes, or exceeds it."},
    {"unknown_opcode", "packets", Side::kReceiver, "BTH opcode that the specification does not define."},
    {"icrc_mismatch", "packets", Side::kReceiver, "Invariant CRC does not match: damaged on the way or badly built."},
    {"payload_too_long", "packets", Side::kReceiver, "Payload longer than the MTU of the port."},
    {"unknown_destination", "packets", Side::kReceiver, "Destination address is not a GID of the port."},
    {"wrong_port", "packets", Side::kReceiver,
     "Came to one port of a device for a queue pair of another port: the sender has the QPN of one and the address of "
     "the "
     "other."},
    {"unknown_lid", "packets", Side::kReceiver,
     "InfiniBand: destination LID is not one of the port. The sender's address is older than the LID, or the LID map "
     "leads to the wrong host."},
    {"lid_not_of_source", "packets", Side::kReceiver,
     "InfiniBand: came from another address than the LID map has for its source LID: forged, or the map needs the "
     "address that the sender sends from."},
    {"gid_not_of_lid", "packets", Side::kReceiver,
     "InfiniBand: the destination GID in the GRH belongs to another port than the destination LID."},
    {"unknown_qpn", "packets", Side::kReceiver,
     "No queue pair has the destination QPN: destroyed, or of an earlier process."},
    {"not_attached", "packets", Side::kReceiver,
     "Multicast packet for a group that no queue pair here is attached to."},
    {"hand_over_failed", "packets", Side::kReceiver,
     "Arrived in the wrong process and could not be handed to the right one."},
    {"bad_qp_state", "packets", Side::kReceiver, "Queue pair not yet in RTR, or in the error state."},
    {"opcode_not_for_qp", "packets", Side::kReceiver, "Opcode of another transport than the queue pair's type."},
    {"pkey_mismatch", "packets", Side::kReceiver, "P_Key does not match the queue pair's."},
    {"qkey_mismatch", "packets", Side::kReceiver, "Q_Key differs from the queue pair's."},
    {"no_receive_request", "packets", Side::kReceiver, "No receive was posted. Post more, or earlier."},
    {"receive_too_small", "packets", Side::kReceiver,
     "Posted receive shorter than payload + 40 bytes of GRH. It stays first in its queue: post MTU + 40 bytes."},
    {"receive_protection", "packets", Side::kReceiver, "Posted receive names memory it may not write."},
    {"frame_too_long", "packets", Side::kReceiver,
     "Raw packet: Ethernet frame longer than the receive that was its turn, which ended with a local length error."},
    {"frame_coalesced", "packets", Side::kReceiver,
     "Raw packet: longer than a frame of the interface, because the kernel put several into one. Turn that off: "
     "`ethtool -K INTERFACE gro off`, at a veth's other end also `tso off gso off`."},
    {"dropped_by_flow", "packets", Side::kReceiver, "Raw packet: a flow with the action DROP took it."},
    {"not_the_peer", "packets", Side::kReceiver, "For a connection, but not from the address that it is connected to."},
    {"out_of_sequence", "packets", Side::kReceiver,
     "Request on a connection ahead of the one expected: an earlier one was lost, and all are asked for again."},
    {"duplicate_request", "packets", Side::kReceiver,
     "Read or atomic that was answered before and is no longer remembered."},
    {"invalid_request", "packets", Side::kReceiver,
     "Request that its connection does not allow: opcodes out of order, a wrong length, too many reads at once."},
    {"unknown_shared_queue", "packets", Side::kReceiver,
     "XRC request for a shared receive queue that its XRC domain does not have, or for another than its message began "
     "for."},
    {"remote_access", "packets", Side::kReceiver,
     "Request for memory that its key does not name, does not hold, or does not let it touch."},
    {"unexpected_response", "packets", Side::kReceiver, "Answer to a request that was never sent, or of another kind."},
    {"bad_syndrome", "packets", Side::kReceiver, "Acknowledgement with a syndrome that the specification reserves."},
    {"cq_overrun", "packets", Side::kReceiver,
     "Completion queue full; the completion was lost. Make it larger or poll more."},
    {"socket_overflow", "packets", Side::kReceiver,
     "The kernel's socket buffer was full. Raise net.core.rmem_max or poll more."},
    {"ring_broken", "packets", Side::kReceiver,
     "The ring of a process on this host held what cannot be, and was closed with what it still held."},
    {"no_route", "packets", Side::kSender,
     "The kernel has no route to the destination. Not what waited for a next hop that does not answer: the kernel "
     "drops "
     "that later and says nothing (`ip neigh` shows FAILED, and so does `verbena doctor`)."},
    {"udp_not_open", "packets", Side::kSender,
     "UDP port 4791 (InfiniBand: 4797) of the source address is not open here: another user or a kernel RoCE device "
     "holds it (`verbena gids` says who), or VERBENA_UDP=off."},
    {"peer_gone", "packets", Side::kSender, "The destination process on this host has ended."},
    {"peer_stalled", "packets", Side::kSender,
     "The destination process on this host does not take packets out of its ring."},
    {"port_down", "packets", Side::kSender, "The interface is down."},
    {"socket_error", "packets", Side::kSender, "The kernel refused the packet for another reason; the log names it."},
    {"datagram_too_long", "packets", Side::kSender, "Longer than the interface or the ring can carry."},
    {"impair_loss", "packets", Side::kSender, "Dropped on purpose by VERBENA_IMPAIR."},
    {"impair_overflow", "packets", Side::kSender, "Too many datagrams held back by VERBENA_IMPAIR at once."},
}};

constexpr const CounterRow& row_of(Drop drop) noexcept {
  return kDropRows[static_cast<std::size_t>(drop)];
}

}  // namespace verbena
