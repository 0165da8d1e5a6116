// The packets in tests/golden, each an IP packet in hex with its source named in the file.
#include <fstream>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "wire/icrc.h"
#include "wire/network_header.h"
#include "wire/test_packets.h"

namespace verbena::wire {
namespace {

using test::Bytes;

Bytes read_golden(const std::string& name) {
  std::ifstream file(VERBENA_GOLDEN_DIR "/" + name + ".hex");
  std::string hex;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with('#')) hex += line;
  }
  return test::bytes_of_hex(hex);
}

ImmDt immediate_of(std::string_view hex) {
  const Bytes bytes = test::bytes_of_hex(hex);
  return ImmDt::decode(std::span(bytes).first<ImmDt::kSize>());
}

struct Expected {
  Packet packet;
  std::string payload;
  bool ipv4 = true;
  std::uint16_t ipv4_id = 0;
};

std::map<std::string, Expected> expectations() {
  std::map<std::string, Expected> all;
  const auto add = [&](const char* name, Opcode opcode, Qpn qpn, Psn psn, std::string payload) -> Expected& {
    Expected& expected = all[name];
    expected.packet.bth.opcode = opcode;
    expected.packet.bth.destination_qpn = qpn;
    expected.packet.bth.psn = psn;
    expected.packet.bth.pad_count = pad_count(payload.size());
    expected.payload = std::move(payload);
    return expected;
  };
  Expected& cnp = add("cnp_connectx4lx", Opcode::kCnp, Qpn(0x118), Psn(0), "");
  cnp.packet.bth.becn = true;
  cnp.ipv4_id = 0x718c;
  Expected& uc = add("uc_send_only_scapy", Opcode::kUcSendOnly, Qpn(211), Psn(13571856),
                     std::string("F0\x81\x8b\xe2\x89\x35\xd9\x0e\x9a\x95PT\x01\xbe\x88^P", 18));
  uc.packet.bth.migration_request = true;
  uc.ipv4_id = 1144;
  Expected& ud = add("ud_send_only_ipv4", Opcode::kUdSendOnly, Qpn(0x010011), Psn(0x123456), "hello");
  ud.packet.bth.solicited = true;
  ud.packet.deth = {Qkey(0x11111111), Qpn(0x020022)};
  Expected& ud6 = add("ud_send_only_imm_ipv6", Opcode::kUdSendOnlyImm, kMulticastQpn, Psn(0xffffff), "verbena!");
  ud6.packet.bth.pkey = Pkey(0x8001);
  ud6.packet.deth = {Qkey(0x22222222), Qpn(0x30)};
  ud6.packet.imm_dt = immediate_of("deadbeef");
  ud6.ipv4 = false;
  Expected& write = add("rc_write_only_imm", Opcode::kRcWriteOnlyImm, Qpn(0x17), Psn(0x800000), "seventy");
  write.packet.bth.ack_request = true;
  write.packet.reth = {0x7f00112233445566, MemoryKey(0x1a2b3c4d), 7};
  write.packet.imm_dt = immediate_of("01020304");
  Expected& read = add("rc_read_response_first", Opcode::kRcReadResponseFirst, Qpn(0x18), Psn(5), "twelve bytes");
  read.packet.aeth = {Syndrome::ack(0x1f), 9};
  read.ipv4 = false;
  Expected& nak = add("rc_nak", Opcode::kRcAcknowledge, Qpn(0x19), Psn(6), "");
  nak.packet.aeth = {Syndrome::nak(NakCode::kRemoteAccessError), 0xabcdef};
  nak.ipv4_id = 0xbeef;
  Expected& atomic = add("rc_atomic_acknowledge", Opcode::kRcAtomicAcknowledge, Qpn(0x1a), Psn(7), "");
  atomic.packet.aeth = {Syndrome::ack(3), 1};
  atomic.packet.atomic_ack_eth = {0x0123456789abcdef};
  Expected& swap = add("rc_compare_swap", Opcode::kRcCompareSwap, Qpn(0x1b), Psn(8), "");
  swap.packet.bth.ack_request = true;
  swap.packet.atomic_eth = {0x1000, MemoryKey(0x77), 0x5555, 0xaaaa};
  Expected& send = add("rc_send_last_invalidate", Opcode::kRcSendLastInvalidate, Qpn(0x1c), Psn(9), "end");
  send.packet.ieth = {MemoryKey(0xcafe01)};
  Expected& flush = add("rc_flush", Opcode::kRcFlush, Qpn(0x1d), Psn(10), "");
  flush.packet.bth.ack_request = true;
  flush.packet.feth = {2, 0};
  flush.packet.reth = {0x2000, MemoryKey(0x88), 4096};
  Expected& xrc = add("xrc_write_only", Opcode::kXrcWriteOnly, Qpn(0x1e), Psn(11), "x");
  xrc.packet.xrceth = {0x123};
  xrc.packet.reth = {0x3000, MemoryKey(0x99), 1};
  return all;
}

class Golden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    all_ = expectations();
    expected_ = &all_.at(GetParam());
    expected_->packet.payload = std::as_bytes(std::span(expected_->payload));
    bytes_ = read_golden(GetParam());
    const auto view = parse_network_header(bytes_);
    ASSERT_TRUE(view);
    view_ = *view;
  }

  std::map<std::string, Expected> all_;
  Expected* expected_ = nullptr;
  Bytes bytes_;
  NetworkHeaderView view_;
};

TEST_P(Golden, DecodesToItsFields) {
  EXPECT_EQ(is_ipv4(view_.envelope), expected_->ipv4);
  EXPECT_EQ(view_.ipv4_id, expected_->ipv4_id);
  EXPECT_TRUE(view_.checksum_valid);
  EXPECT_EQ(view_.destination_port, kRoceUdpPort);
  Packet packet;
  ASSERT_EQ(decode_packet(view_.udp_payload, true, packet), Drop::kNone);
  EXPECT_TRUE(test::same(packet, expected_->packet));
}

TEST_P(Golden, EncodesFromItsFields) {
  const Bytes bytes = test::whole_with_icrc(expected_->packet, view_.header);
  EXPECT_EQ(bytes, Bytes(view_.udp_payload.begin(), view_.udp_payload.end()));
}

TEST_P(Golden, CarriesTheRightIcrc) {
  EXPECT_EQ(verify_icrc(view_.header, view_.udp_payload).strength, IcrcStrength::kExact);
}

TEST_P(Golden, IcrcIsExplainedWithoutKnowingTheId) {
  const NetworkHeader header(view_.envelope, view_.udp_payload.size());
  const IcrcCheck check = verify_icrc_of_unknown_id(header.bytes(), view_.udp_payload);
  EXPECT_EQ(check.strength, expected_->ipv4_id == 0 ? IcrcStrength::kExact : IcrcStrength::kResidual);
  EXPECT_EQ(check.ipv4_id, expected_->ipv4_id);
  EXPECT_TRUE(check.dont_fragment);
}

TEST_P(Golden, NetworkHeaderIsMadeTheSameWhereTheIdIsZero) {
  if (expected_->ipv4_id == 0) {
    const NetworkHeader header(view_.envelope, view_.udp_payload.size());
    EXPECT_TRUE(std::equal(view_.header.begin(), view_.header.end(), header.bytes().begin(), header.bytes().end()));
  }
}

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const auto& [name, expected] : expectations()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Wire, Golden, testing::ValuesIn(names()), [](const auto& named) { return named.param; });

}  // namespace
}  // namespace verbena::wire
