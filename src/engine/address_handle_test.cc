#include "engine/address_handle.h"

#include <cerrno>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/source_port.h"

namespace verbena::engine {
namespace {

using ::testing::HasSubstr;

class AddressHandleTest : public ::testing::Test {
 protected:
  AddressHandleTest() {
    for (const char* text : {"fe80::1", "10.0.0.1", "fd00::1", "::", "10.0.0.1", "127.0.0.1"}) {
      gids_.push_back({*parse_gid(text), GidType::kRoceV2});
    }
    gids_[4].type = GidType::kRoceV1;
    port_.gids = gids_;
  }

  static AddressVector vector(const char* destination, std::uint8_t sgid_index) {
    AddressVector made;
    made.destination = *parse_gid(destination);
    made.sgid_index = sgid_index;
    made.is_global = true;
    made.port = 1;
    return made;
  }
  void expect_refusal(const AddressVector& bad, const std::string& words, int error = EINVAL) {
    const auto result = validate(bad, port_, &domain_);
    ASSERT_FALSE(result) << words;
    EXPECT_EQ(result.error().system_errno, error) << words;
    EXPECT_THAT(result.error().message, HasSubstr(words));
  }

  std::vector<GidEntry> gids_;
  PortView port_;
  ProtectionDomain domain_{1};
};

TEST_F(AddressHandleTest, CarriesWhatAPacketNeeds) {
  AddressVector given = vector("10.0.0.2", 1);
  given.flow_label = 0xfff54321;
  given.traffic_class = 0xb8;
  given.hop_limit = 7;
  const auto handle = validate(given, port_, &domain_);
  ASSERT_TRUE(handle);
  EXPECT_EQ(handle->domain, &domain_);
  EXPECT_EQ(handle->vector.flow_label, 0x54321U);
  EXPECT_EQ(handle->envelope.source, gids_[1].gid);
  EXPECT_EQ(handle->envelope.destination, given.destination);
  EXPECT_EQ(handle->envelope.traffic_class, 0xb8);
  EXPECT_EQ(handle->envelope.hop_limit, 7);
  EXPECT_EQ(handle->envelope.source_port, wire::source_port_of_flow_label(0x54321));
  EXPECT_EQ(handle->byte_period, 0U);
}

TEST_F(AddressHandleTest, LeavesTheSourcePortToTheQueuePairWithoutFlowLabel) {
  EXPECT_EQ(validate(vector("10.0.0.2", 1), port_, &domain_)->envelope.source_port, 0);
  AddressVector beyond = vector("10.0.0.2", 1);
  beyond.flow_label = 0x100000;  // outside of the 20 bits
  EXPECT_EQ(validate(beyond, port_, &domain_)->envelope.source_port, 0);
}

TEST_F(AddressHandleTest, HopLimitZeroIsTheUsualOne) {
  EXPECT_EQ(validate(vector("10.0.0.2", 1), port_, &domain_)->envelope.hop_limit, kDefaultHopLimit);
}

TEST_F(AddressHandleTest, AcceptsEveryPairOfOneFamily) {
  for (const auto& [destination, index] : std::vector<std::pair<const char*, std::uint8_t>>{
           {"fe80::2", 0},
           {"fd00::2", 0},
           {"fe80::2", 2},
           {"2001:db8::1", 2},
           {"10.0.0.2", 1},
           {"10.0.0.1", 1},   // itself
           {"fe80::1", 0},    // itself
           {"127.0.0.1", 5},  // loopback
           {"224.0.0.9", 1},
           {"ff0e::1", 2},
           {"ff02::1", 0},
       }) {
    EXPECT_TRUE(validate(vector(destination, index), port_, &domain_)) << destination << " from " << int{index};
  }
}

TEST_F(AddressHandleTest, RefusesFamiliesThatDoNotMatch) {
  expect_refusal(vector("fe80::2", 1), "another address family");
  expect_refusal(vector("fd00::2", 1), "fd00::2 is of another address family than source GID index 1");
  expect_refusal(vector("10.0.0.2", 0), "another address family");
  expect_refusal(vector("10.0.0.2", 2), "another address family");
  expect_refusal(vector("ff0e::1", 1), "another address family");
  expect_refusal(vector("224.0.0.9", 2), "another address family");
}

TEST_F(AddressHandleTest, RefusesBadGids) {
  expect_refusal(vector("fd00::2", 3), "source GID index 3 is empty");
  expect_refusal(vector("10.0.0.2", 4), "RoCE v1");
  expect_refusal(vector("10.0.0.2", 6), "source GID index 6 is outside the table of 6 entries");
  expect_refusal(vector("10.0.0.2", 255), "outside the table");
  expect_refusal(vector("::", 2), "destination GID is zero");
  expect_refusal(vector("::", 1), "destination GID is zero");
}

TEST_F(AddressHandleTest, RefusesAnAddressWithoutGrhOnRoce) {
  AddressVector bad = vector("10.0.0.2", 1);
  bad.is_global = false;
  bad.destination_lid = 3;
  expect_refusal(bad, "GRH is needed");
}

TEST_F(AddressHandleTest, TakesALidAloneOnInfiniband) {
  port_.link_layer = LinkLayer::kInfiniband;
  port_.lid = 8;
  port_.lmc = 2;
  port_.process_port = 6;
  AddressVector given;
  given.port = 1;
  given.destination_lid = 3;
  given.service_level = 5;
  given.source_path_bits = 2;
  auto handle = validate(given, port_, &domain_);
  ASSERT_TRUE(handle);
  EXPECT_TRUE(handle->envelope.is_infiniband());
  EXPECT_FALSE(handle->envelope.link.has_grh);
  EXPECT_EQ(handle->envelope.link.port, 6);
  EXPECT_EQ(handle->envelope.link.path_bits, 2);
  EXPECT_EQ(handle->envelope.link.destination_lid, 3);
  EXPECT_EQ(handle->envelope.link.service_level, 5);

  given.is_global = true;
  given.destination = *parse_gid("fe80::7");
  given.flow_label = 0xfff54321;
  handle = validate(given, port_, &domain_);
  ASSERT_TRUE(handle);
  EXPECT_TRUE(handle->envelope.link.has_grh);
  EXPECT_EQ(handle->envelope.link.flow_label, 0x54321U);
  EXPECT_EQ(handle->envelope.source, gids_[0].gid);
}

TEST_F(AddressHandleTest, RefusesLidsThatNameNoPort) {
  port_.link_layer = LinkLayer::kInfiniband;
  port_.lid = 8;
  port_.lmc = 1;
  AddressVector bad;
  bad.port = 1;
  expect_refusal(bad, "LID 0 names no port");
  bad.destination_lid = 3;
  bad.source_path_bits = 2;
  expect_refusal(bad, "source path bits 2 are outside the port's 2 LIDs");
  bad.source_path_bits = 1;
  bad.destination_lid = 0xc005;
  expect_refusal(bad, "LID 49157 is of a multicast group, and needs a GRH");
  bad.destination_lid = 0xffff;
  expect_refusal(bad, "LID 65535 is the permissive one");
  bad.is_global = true;
  expect_refusal(bad, "LID 65535 is the permissive one");
  bad.destination_lid = 3;
  expect_refusal(bad, "destination GID is zero");
}

TEST_F(AddressHandleTest, RefusesNumbersOutOfRange) {
  for (const auto port : std::initializer_list<std::uint8_t>{0, 2, 255}) {
    AddressVector bad = vector("10.0.0.2", 1);
    bad.port = port;
    expect_refusal(bad, "port " + std::to_string(port) + " does not exist");
  }
  AddressVector bad = vector("10.0.0.2", 1);
  bad.service_level = 16;
  expect_refusal(bad, "service level 16");
  bad.service_level = 15;
  EXPECT_TRUE(validate(bad, port_, &domain_));
}

TEST_F(AddressHandleTest, SaysWhichPortsThereAre) {
  port_.count = 2;
  AddressVector bad = vector("10.0.0.2", 1);
  bad.port = 3;
  expect_refusal(bad, "port 3 does not exist; the device has ports 1 to 2");
  bad.port = 2;
  expect_refusal(bad, "port 2 is another than port 1, which the queue pair is on");
}

TEST_F(AddressHandleTest, TakesEveryRateThatVerbsDefinesAndNoOther) {
  for (int code = 0; code < 256; ++code) {
    AddressVector given = vector("10.0.0.2", 1);
    given.static_rate = static_cast<std::uint8_t>(code);
    const bool good = code == 0 || (code >= 2 && code <= 24);
    if (!good) {
      expect_refusal(given, "static rate " + std::to_string(code));
      continue;
    }
    const auto handle = validate(given, port_, &domain_);
    ASSERT_TRUE(handle) << code;
    EXPECT_EQ(handle->byte_period != 0, code != 0) << code;
  }
}

}  // namespace
}  // namespace verbena::engine
