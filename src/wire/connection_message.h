// The messages of the communication manager: how queue pairs of two hosts find each other (InfiniBand Architecture
// volume 1, chapter 12; annex A11 for what an IP address adds to the private data).
//
//   connection   REQ ─> <─ REP ─> RTU   then   DREQ ─> <─ DREP      REJ ends an attempt, MRA asks for time
//   datagrams    SIDR_REQ ─> <─ SIDR_REP
//
// Each is the payload of one management datagram of class 7. Fields that only other transports use (end-to-end
// contexts, alternate paths) are not kept: they are written as zero.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "base/psn.h"
#include "base/qpn.h"
#include "verbena/gid.h"
#include "wire/mad.h"

namespace verbena::wire {

inline constexpr std::uint8_t kConnectionClass = 0x07;
inline constexpr std::uint8_t kMethodSend = 0x03;

// What an application may add to a message. Fixed by the message, padded with zeros.
template <std::size_t Size>
using PrivateData = std::array<std::byte, Size>;

struct ConnectRequest {
  static constexpr std::uint16_t kAttribute = 0x10;

  std::uint32_t local_id = 0;
  std::uint64_t service_id = 0;
  std::uint64_t local_guid = 0;
  std::uint32_t local_qkey = 0;
  Qpn local_qpn{};
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t remote_response_timeout = 0;  // 5 bits, 4.096 us << n
  std::uint8_t transport = 0;                // 2 bits: 0 RC, 1 UC, 3 the extended one
  bool flow_control = false;
  Psn starting_psn{};                       // at which the send queue of who receives this is to begin
  std::uint8_t local_response_timeout = 0;  // 5 bits
  std::uint8_t retry_count = 0;             // 3 bits
  std::uint16_t pkey = 0xffff;
  std::uint8_t path_mtu = 0;         // 4 bits: 1 is 256 bytes, 5 is 4096
  std::uint8_t rnr_retry_count = 0;  // 3 bits
  std::uint8_t most_retries = 0;     // 4 bits: how often a message is sent again
  bool shared_receives = false;
  std::uint8_t extended_transport = 0;  // 3 bits: 1 is XRC
  std::uint16_t local_lid = 0xffff;     // no LID on RoCE
  std::uint16_t remote_lid = 0xffff;
  Gid local_gid{};
  Gid remote_gid{};
  std::uint32_t flow_label = 0;  // 20 bits
  std::uint8_t packet_rate = 0;  // 6 bits
  std::uint8_t traffic_class = 0;
  std::uint8_t hop_limit = 0;
  std::uint8_t service_level = 0;  // 4 bits
  bool subnet_local = false;
  std::uint8_t ack_timeout = 0;  // 5 bits
  PrivateData<92> private_data{};

  friend bool operator==(const ConnectRequest&, const ConnectRequest&) = default;
};

// Which message another one speaks of.
enum class Answered : std::uint8_t { kRequest = 0, kReply = 1, kOther = 2 };

// "It takes longer": the sender of the message named should wait.
struct MoreTime {
  static constexpr std::uint16_t kAttribute = 0x11;

  std::uint32_t local_id = 0;
  std::uint32_t remote_id = 0;
  Answered message = Answered::kRequest;
  std::uint8_t service_timeout = 0;  // 5 bits, 4.096 us << n
  PrivateData<222> private_data{};

  friend bool operator==(const MoreTime&, const MoreTime&) = default;
};

struct Rejection {
  static constexpr std::uint16_t kAttribute = 0x12;

  std::uint32_t local_id = 0;
  std::uint32_t remote_id = 0;
  Answered message = Answered::kRequest;
  std::uint8_t information_length = 0;  // 7 bits
  std::uint16_t reason = 0;
  PrivateData<72> information{};
  PrivateData<148> private_data{};

  friend bool operator==(const Rejection&, const Rejection&) = default;
};

struct ConnectReply {
  static constexpr std::uint16_t kAttribute = 0x13;

  std::uint32_t local_id = 0;
  std::uint32_t remote_id = 0;
  std::uint32_t local_qkey = 0;
  Qpn local_qpn{};
  Psn starting_psn{};  // at which the send queue of who receives this is to begin
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t ack_delay = 0;  // 5 bits
  std::uint8_t failover = 0;   // 2 bits
  bool flow_control = false;
  std::uint8_t rnr_retry_count = 0;  // 3 bits
  bool shared_receives = false;
  std::uint64_t local_guid = 0;
  PrivateData<196> private_data{};

  friend bool operator==(const ConnectReply&, const ConnectReply&) = default;
};

struct ReadyToUse {
  static constexpr std::uint16_t kAttribute = 0x14;

  std::uint32_t local_id = 0;
  std::uint32_t remote_id = 0;
  PrivateData<224> private_data{};

  friend bool operator==(const ReadyToUse&, const ReadyToUse&) = default;
};

struct DisconnectRequest {
  static constexpr std::uint16_t kAttribute = 0x15;

  std::uint32_t local_id = 0;
  std::uint32_t remote_id = 0;
  Qpn remote_qpn{};
  PrivateData<220> private_data{};

  friend bool operator==(const DisconnectRequest&, const DisconnectRequest&) = default;
};

struct DisconnectReply {
  static constexpr std::uint16_t kAttribute = 0x16;

  std::uint32_t local_id = 0;
  std::uint32_t remote_id = 0;
  PrivateData<224> private_data{};

  friend bool operator==(const DisconnectReply&, const DisconnectReply&) = default;
};

struct ServiceRequest {
  static constexpr std::uint16_t kAttribute = 0x17;

  std::uint32_t request_id = 0;
  std::uint16_t pkey = 0xffff;
  std::uint64_t service_id = 0;
  PrivateData<216> private_data{};

  friend bool operator==(const ServiceRequest&, const ServiceRequest&) = default;
};

struct ServiceReply {
  static constexpr std::uint16_t kAttribute = 0x18;

  std::uint32_t request_id = 0;
  std::uint8_t status = 0;
  std::uint8_t information_length = 0;
  Qpn qpn{};
  std::uint64_t service_id = 0;
  std::uint32_t qkey = 0;
  PrivateData<72> information{};
  PrivateData<136> private_data{};

  friend bool operator==(const ServiceReply&, const ServiceReply&) = default;
};

using ConnectionMessage = std::variant<ConnectRequest, MoreTime, Rejection, ConnectReply, ReadyToUse, DisconnectRequest,
                                       DisconnectReply, ServiceRequest, ServiceReply>;

// Nothing for what is no management datagram of 256 bytes, of another class or version, not of method Send, or of an
// attribute that is not above.
std::optional<ConnectionMessage> decode_connection_message(std::span<const std::byte> bytes) noexcept;
Mad encode_connection_message(const ConnectionMessage& message, std::uint64_t transaction) noexcept;

// Requires: decode_connection_message() took `bytes`.
std::uint64_t transaction_of(std::span<const std::byte> bytes) noexcept;

// Where the number of the receiver's own connection stands in a message, which tells whose it is: nothing for requests
// to a service.
std::optional<std::uint32_t> addressee_of(const ConnectionMessage& message) noexcept;
// The service of a request; nothing for the rest.
std::optional<std::uint64_t> service_of(const ConnectionMessage& message) noexcept;

}  // namespace verbena::wire
