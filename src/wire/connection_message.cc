#include "wire/connection_message.h"

#include <algorithm>
#include <type_traits>

namespace verbena::wire {
namespace {

// Fields of any width, the highest bit first, one behind the other. Both know only where they stand.
class BitReader {
 public:
  explicit BitReader(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  template <class Value>
  void field(unsigned width, Value& value) noexcept {
    std::uint64_t bits = 0;
    for (unsigned i = 0; i < width; ++i, ++at_) {
      const auto byte = std::to_integer<unsigned>(bytes_[at_ / 8]);
      bits = bits << 1 | (byte >> (7 - at_ % 8) & 1);
    }
    if constexpr (std::is_class_v<Value>) {
      value = Value(static_cast<std::uint32_t>(bits));
    } else {
      value = static_cast<Value>(bits);
    }
  }
  template <class Bytes>
  void block(Bytes& to) noexcept {
    for (auto& byte : to) {
      byte = static_cast<std::remove_reference_t<decltype(byte)>>(bytes_[at_ / 8]);
      at_ += 8;
    }
  }
  void zeros(unsigned width) noexcept { at_ += width; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

class BitWriter {
 public:
  // Requires: `bytes` are zero.
  explicit BitWriter(std::span<std::byte> bytes) noexcept : bytes_(bytes) {}

  template <class Value>
  void field(unsigned width, const Value& value) noexcept {
    std::uint64_t bits = 0;
    if constexpr (std::is_class_v<Value>) {
      bits = value.value();
    } else {
      bits = static_cast<std::uint64_t>(value);
    }
    for (unsigned i = width; i-- > 0; ++at_) {
      if ((bits >> i & 1) != 0) bytes_[at_ / 8] |= static_cast<std::byte>(0x80U >> at_ % 8);
    }
  }
  template <class Bytes>
  void block(const Bytes& from) noexcept {
    for (const auto byte : from) {
      bytes_[at_ / 8] = static_cast<std::byte>(byte);
      at_ += 8;
    }
  }
  void zeros(unsigned width) noexcept { at_ += width; }

 private:
  std::span<std::byte> bytes_;
  std::size_t at_ = 0;
};

// One description a message, for reading and for writing. Widths are bits.
template <class Message, class Wanted>
concept Is = std::is_same_v<std::remove_const_t<Message>, Wanted>;

template <class Bits, Is<ConnectRequest> Message>
void describe(Bits& bits, Message& m) noexcept {
  bits.field(32, m.local_id);
  bits.zeros(32);
  bits.field(64, m.service_id);
  bits.field(64, m.local_guid);
  bits.zeros(32);
  bits.field(32, m.local_qkey);
  bits.field(24, m.local_qpn);
  bits.field(8, m.responder_resources);
  bits.zeros(24);  // local end-to-end context
  bits.field(8, m.initiator_depth);
  bits.zeros(24);  // remote end-to-end context
  bits.field(5, m.remote_response_timeout);
  bits.field(2, m.transport);
  bits.field(1, m.flow_control);
  bits.field(24, m.starting_psn);
  bits.field(5, m.local_response_timeout);
  bits.field(3, m.retry_count);
  bits.field(16, m.pkey);
  bits.field(4, m.path_mtu);
  bits.zeros(1);  // RDC exists
  bits.field(3, m.rnr_retry_count);
  bits.field(4, m.most_retries);
  bits.field(1, m.shared_receives);
  bits.field(3, m.extended_transport);
  bits.field(16, m.local_lid);
  bits.field(16, m.remote_lid);
  bits.block(m.local_gid.bytes);
  bits.block(m.remote_gid.bytes);
  bits.field(20, m.flow_label);
  bits.zeros(6);
  bits.field(6, m.packet_rate);
  bits.field(8, m.traffic_class);
  bits.field(8, m.hop_limit);
  bits.field(4, m.service_level);
  bits.field(1, m.subnet_local);
  bits.zeros(3);
  bits.field(5, m.ack_timeout);
  bits.zeros(3);
  bits.zeros(8 * 44);  // the alternate path
  bits.block(m.private_data);
}

template <class Bits, Is<MoreTime> Message>
void describe(Bits& bits, Message& m) noexcept {
  bits.field(32, m.local_id);
  bits.field(32, m.remote_id);
  bits.field(2, m.message);
  bits.zeros(6);
  bits.field(5, m.service_timeout);
  bits.zeros(3);
  bits.block(m.private_data);
}

template <class Bits, Is<Rejection> Message>
void describe(Bits& bits, Message& m) noexcept {
  bits.field(32, m.local_id);
  bits.field(32, m.remote_id);
  bits.field(2, m.message);
  bits.zeros(6);
  bits.field(7, m.information_length);
  bits.zeros(1);
  bits.field(16, m.reason);
  bits.block(m.information);
  bits.block(m.private_data);
}

template <class Bits, Is<ConnectReply> Message>
void describe(Bits& bits, Message& m) noexcept {
  bits.field(32, m.local_id);
  bits.field(32, m.remote_id);
  bits.field(32, m.local_qkey);
  bits.field(24, m.local_qpn);
  bits.zeros(8);
  bits.zeros(24);  // local end-to-end context
  bits.zeros(8);
  bits.field(24, m.starting_psn);
  bits.zeros(8);
  bits.field(8, m.responder_resources);
  bits.field(8, m.initiator_depth);
  bits.field(5, m.ack_delay);
  bits.field(2, m.failover);
  bits.field(1, m.flow_control);
  bits.field(3, m.rnr_retry_count);
  bits.field(1, m.shared_receives);
  bits.zeros(4);
  bits.field(64, m.local_guid);
  bits.block(m.private_data);
}

template <class Bits, class Message>
requires Is<Message, ReadyToUse> || Is<Message, DisconnectReply>
void describe(Bits& bits, Message& m) noexcept {
  bits.field(32, m.local_id);
  bits.field(32, m.remote_id);
  bits.block(m.private_data);
}

template <class Bits, Is<DisconnectRequest> Message>
void describe(Bits& bits, Message& m) noexcept {
  bits.field(32, m.local_id);
  bits.field(32, m.remote_id);
  bits.field(24, m.remote_qpn);
  bits.zeros(8);
  bits.block(m.private_data);
}

template <class Bits, Is<ServiceRequest> Message>
void describe(Bits& bits, Message& m) noexcept {
  bits.field(32, m.request_id);
  bits.field(16, m.pkey);
  bits.zeros(16);
  bits.field(64, m.service_id);
  bits.block(m.private_data);
}

template <class Bits, Is<ServiceReply> Message>
void describe(Bits& bits, Message& m) noexcept {
  bits.field(32, m.request_id);
  bits.field(8, m.status);
  bits.field(8, m.information_length);
  bits.zeros(16);
  bits.field(24, m.qpn);
  bits.zeros(8);
  bits.field(64, m.service_id);
  bits.field(32, m.qkey);
  bits.block(m.information);
  bits.block(m.private_data);
}

template <std::size_t Index = 0>
std::optional<ConnectionMessage> decode_as(std::uint16_t attribute, std::span<const std::byte> payload) noexcept {
  if constexpr (Index == std::variant_size_v<ConnectionMessage>) {
    return std::nullopt;
  } else {
    using Message = std::variant_alternative_t<Index, ConnectionMessage>;
    if (attribute != Message::kAttribute) return decode_as<Index + 1>(attribute, payload);
    Message message;
    BitReader bits(payload);
    describe(bits, message);
    return message;
  }
}

}  // namespace

std::optional<ConnectionMessage> decode_connection_message(std::span<const std::byte> bytes) noexcept {
  if (bytes.size() != kMadSize) return std::nullopt;
  const MadHeader header = MadHeader::decode(bytes.first<MadHeader::kSize>());
  if (header.base_version != 1 || header.management_class != kConnectionClass || header.class_version != 2 ||
      header.method != kMethodSend) {
    return std::nullopt;
  }
  return decode_as(header.attribute, bytes.subspan(MadHeader::kSize));
}

Mad encode_connection_message(const ConnectionMessage& message, std::uint64_t transaction) noexcept {
  Mad mad{};
  const std::span<std::byte> payload = std::span<std::byte>(mad).subspan(MadHeader::kSize);
  MadHeader header{.management_class = kConnectionClass, .method = kMethodSend, .transaction = transaction};
  std::visit(
      [&](const auto& m) {
        header.attribute = m.kAttribute;
        BitWriter bits(payload);
        describe(bits, m);
      },
      message);
  header.encode(std::span(mad).first<MadHeader::kSize>());
  return mad;
}

std::uint64_t transaction_of(std::span<const std::byte> bytes) noexcept {
  return MadHeader::decode(bytes.first<MadHeader::kSize>()).transaction;
}

std::optional<std::uint32_t> addressee_of(const ConnectionMessage& message) noexcept {
  return std::visit(
      [](const auto& m) -> std::optional<std::uint32_t> {
        if constexpr (requires { m.remote_id; }) {
          return m.remote_id;
        } else if constexpr (requires { m.qpn; }) {
          return m.request_id;
        } else {
          return std::nullopt;
        }
      },
      message);
}

std::optional<std::uint64_t> service_of(const ConnectionMessage& message) noexcept {
  if (const auto* request = std::get_if<ConnectRequest>(&message)) return request->service_id;
  if (const auto* request = std::get_if<ServiceRequest>(&message)) return request->service_id;
  return std::nullopt;
}

}  // namespace verbena::wire
