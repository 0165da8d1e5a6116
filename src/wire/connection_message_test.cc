#include "wire/connection_message.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "wire/ip_service.h"

namespace verbena::wire {
namespace {

template <std::size_t Size>
PrivateData<Size> counted(int from) {
  PrivateData<Size> data;
  for (std::size_t i = 0; i < Size; ++i) data[i] = static_cast<std::byte>(from + static_cast<int>(i));
  return data;
}

Gid address(std::uint8_t last) {
  return Gid::from_ipv4(0x0a000000U + last);
}

// One of each kind, every field with a value of its own.
std::vector<ConnectionMessage> every_message() {
  return {
      ConnectRequest{.local_id = 0x11223344,
                     .service_id = 0x0000000001061234,
                     .local_guid = 0x0102030405060708,
                     .local_qkey = 0x55667788,
                     .local_qpn = Qpn(0xabcdef),
                     .responder_resources = 16,
                     .initiator_depth = 15,
                     .remote_response_timeout = 20,
                     .transport = 3,
                     .flow_control = true,
                     .starting_psn = Psn(0x123456),
                     .local_response_timeout = 21,
                     .retry_count = 7,
                     .pkey = 0x8001,
                     .path_mtu = 5,
                     .rnr_retry_count = 6,
                     .most_retries = 15,
                     .shared_receives = true,
                     .extended_transport = 1,
                     .local_lid = 0x1111,
                     .remote_lid = 0x2222,
                     .local_gid = address(1),
                     .remote_gid = address(2),
                     .flow_label = 0xabcde,
                     .packet_rate = 0x2a,
                     .traffic_class = 0x68,
                     .hop_limit = 64,
                     .service_level = 9,
                     .subnet_local = true,
                     .ack_timeout = 17,
                     .private_data = counted<92>(1)},
      MoreTime{.local_id = 1,
               .remote_id = 2,
               .message = Answered::kReply,
               .service_timeout = 24,
               .private_data = counted<222>(3)},
      Rejection{.local_id = 1,
                .remote_id = 2,
                .message = Answered::kOther,
                .information_length = 72,
                .reason = 28,
                .information = counted<72>(4),
                .private_data = counted<148>(5)},
      ConnectReply{.local_id = 3,
                   .remote_id = 4,
                   .local_qkey = 5,
                   .local_qpn = Qpn(0x102030),
                   .starting_psn = Psn(0x405060),
                   .responder_resources = 8,
                   .initiator_depth = 9,
                   .ack_delay = 31,
                   .failover = 2,
                   .flow_control = true,
                   .rnr_retry_count = 5,
                   .shared_receives = true,
                   .local_guid = 0x99,
                   .private_data = counted<196>(6)},
      ReadyToUse{.local_id = 5, .remote_id = 6, .private_data = counted<224>(7)},
      DisconnectRequest{.local_id = 7, .remote_id = 8, .remote_qpn = Qpn(0x70), .private_data = counted<220>(8)},
      DisconnectReply{.local_id = 9, .remote_id = 10, .private_data = counted<224>(9)},
      ServiceRequest{.request_id = 11, .pkey = 0xffff, .service_id = 0x1110007, .private_data = counted<216>(10)},
      ServiceReply{.request_id = 12,
                   .status = 3,
                   .information_length = 5,
                   .qpn = Qpn(0x444444),
                   .service_id = 0x1110007,
                   .qkey = 0x01234567,
                   .information = counted<72>(11),
                   .private_data = counted<136>(12)},
  };
}

TEST(ConnectionMessage, EveryKindComesBackAsItWasWritten) {
  for (const auto& message : every_message()) {
    const Mad mad = encode_connection_message(message, 0x123456789abcdef0);
    const auto decoded = decode_connection_message(mad);
    ASSERT_TRUE(decoded) << message.index();
    EXPECT_EQ(*decoded, message) << message.index();
    EXPECT_EQ(transaction_of(mad), 0x123456789abcdef0U);
  }
}

TEST(ConnectionMessage, RejectsEveryTruncationAndWhatIsLonger) {
  for (const auto& message : every_message()) {
    const Mad mad = encode_connection_message(message, 1);
    for (std::size_t size = 0; size < mad.size(); ++size) {
      EXPECT_FALSE(decode_connection_message(std::span(mad).first(size)));
    }
    std::array<std::byte, kMadSize + 1> longer{};
    std::copy(mad.begin(), mad.end(), longer.begin());
    EXPECT_FALSE(decode_connection_message(longer));
  }
}

TEST(ConnectionMessage, RejectsAnotherClassVersionMethodOrAttribute) {
  const Mad good = encode_connection_message(ReadyToUse{}, 1);
  for (const std::size_t at : {0U, 1U, 2U, 3U, 17U}) {
    Mad bad = good;
    bad[at] ^= std::byte{0x40};
    EXPECT_FALSE(decode_connection_message(bad)) << "byte " << at;
  }
}

// Where the specification puts the fields: table 12.6.5 and the kernel's ib_cm agree on these.
TEST(ConnectionMessage, PutsTheFieldsOfARequestWhereTheSpecificationHasThem) {
  const Mad mad = encode_connection_message(every_message().front(), 0);
  const auto byte = [&](std::size_t at) { return std::to_integer<unsigned>(mad[MadHeader::kSize + at]); };
  EXPECT_EQ(byte(0), 0x11U);   // local id
  EXPECT_EQ(byte(13), 0x06U);  // service id: port space 0x0106,
  EXPECT_EQ(byte(15), 0x34U);  // port 0x1234
  EXPECT_EQ(byte(16), 0x01U);  // GUID
  EXPECT_EQ(byte(32), 0xabU);  // QPN
  EXPECT_EQ(byte(35), 16U);    // responder resources
  EXPECT_EQ(byte(39), 15U);    // initiator depth
  EXPECT_EQ(byte(43), 20U << 3 | 3U << 1 | 1U);
  EXPECT_EQ(byte(44), 0x12U);  // starting PSN
  EXPECT_EQ(byte(47), 21U << 3 | 7U);
  EXPECT_EQ(byte(48), 0x80U);  // P_Key
  EXPECT_EQ(byte(50), 5U << 4 | 6U);
  EXPECT_EQ(byte(51), 15U << 4 | 1U << 3 | 1U);
  EXPECT_EQ(byte(52), 0x11U);  // LIDs
  EXPECT_EQ(byte(71), 1U);     // the last byte of the local GID
  EXPECT_EQ(byte(87), 2U);     // and of the remote one
  EXPECT_EQ(byte(91), 0x2aU);  // rate
  EXPECT_EQ(byte(92), 0x68U);  // traffic class
  EXPECT_EQ(byte(93), 64U);
  EXPECT_EQ(byte(94), 9U << 4 | 1U << 3);
  EXPECT_EQ(byte(95), 17U << 3);
  EXPECT_EQ(byte(140), 1U);  // private data
  EXPECT_EQ(byte(231), 92U);
}

TEST(ConnectionMessage, PutsTheFieldsOfAReplyWhereTheSpecificationHasThem) {
  const Mad mad = encode_connection_message(every_message()[3], 0);
  const auto byte = [&](std::size_t at) { return std::to_integer<unsigned>(mad[MadHeader::kSize + at]); };
  EXPECT_EQ(byte(12), 0x10U);  // QPN
  EXPECT_EQ(byte(20), 0x40U);  // starting PSN
  EXPECT_EQ(byte(24), 8U);
  EXPECT_EQ(byte(25), 9U);
  EXPECT_EQ(byte(26), 31U << 3 | 2U << 1 | 1U);
  EXPECT_EQ(byte(27), 5U << 5 | 1U << 4);
  EXPECT_EQ(byte(35), 0x99U);  // GUID
  EXPECT_EQ(byte(36), 6U);     // private data
}

TEST(ConnectionMessage, NamesWhoseItIs) {
  const auto messages = every_message();
  EXPECT_EQ(service_of(messages[0]), 0x1061234U);
  EXPECT_FALSE(addressee_of(messages[0]));
  EXPECT_EQ(addressee_of(messages[3]), 4U);
  EXPECT_EQ(addressee_of(messages[8]), 12U);
  EXPECT_EQ(service_of(messages[7]), 0x1110007U);
  EXPECT_FALSE(addressee_of(messages[7]));
  EXPECT_FALSE(service_of(messages[6]));
}

TEST(IpService, ComesBackInBothFamilies) {
  const IpService v4{.source_port = 40000, .source = address(1), .destination = address(2)};
  const IpService v6{.source_port = 1, .source = *parse_gid("fd00::1"), .destination = *parse_gid("fd00::2")};
  for (const auto& service : {v4, v6}) {
    std::array<std::byte, IpService::kSize> bytes{};
    service.encode(bytes);
    EXPECT_EQ(IpService::decode(bytes), service);
  }
}

TEST(IpService, RefusesOtherVersions) {
  std::array<std::byte, IpService::kSize> bytes{};
  EXPECT_FALSE(IpService::decode(bytes));  // IP version 0
  IpService{.source = address(1), .destination = address(2)}.encode(bytes);
  bytes[0] = std::byte{1};
  EXPECT_FALSE(IpService::decode(bytes));
}

}  // namespace
}  // namespace verbena::wire
