#include "device/infiniband_port.h"

#include <gtest/gtest.h>

#include "device/device_declaration.h"
#include "device/lid_map.h"
#include "device/routes.h"
#include "device/subnet_file.h"
#include "transport/udp/udp_port.h"

namespace verbena::device {
namespace {

PortDeclaration declared(std::string_view text) {
  const auto made = parse_declarations(text);
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  return made && made->size() == 1 && made->front().ports.size() == 1 ? made->front().ports.front() : PortDeclaration{};
}

TEST(DeviceDeclaration, GivesEachAttributeToThePort) {
  const auto made = declared(
      "ib0/link_layer=infiniband/lid=0x10/lmc=2/sm_lid=3/sm_sl=4/guid=0002:c903:0000:0001/subnet_prefix=fec0::/"
      "pkeys=0xffff+0x8001");
  ASSERT_TRUE(made.infiniband);
  EXPECT_EQ(made.interface, "ib0");
  EXPECT_EQ(made.infiniband->lid, 16);
  EXPECT_EQ(made.infiniband->last_lid(), 19);
  EXPECT_EQ(made.infiniband->sm_lid, 3);
  EXPECT_EQ(made.infiniband->sm_sl, 4);
  EXPECT_EQ(made.infiniband->pkeys, (std::vector<std::uint16_t>{0xffff, 0x8001}));
  EXPECT_EQ(to_string(made.infiniband->gid()), "fec0::2:c903:0:1");
  EXPECT_TRUE(made.infiniband->has_gid(*parse_gid("fe80::2:c903:0:1")));
  EXPECT_FALSE(made.infiniband->has_gid(*parse_gid("fe80::2:c903:0:2")));
}

TEST(DeviceDeclaration, AnInterfaceAloneIsEthernet) {
  EXPECT_FALSE(declared("eth0").infiniband);
  EXPECT_FALSE(declared("eth0/link_layer=ethernet").infiniband);
}

TEST(DeviceDeclaration, ABadPartIsNamed) {
  for (const auto* text : {"a/link_layer=infiniband/lid=49152", "a/link_layer=infiniband/lid", "a/lid=4",
                           "a/link_layer=infiniband/lid=6/lmc=2", "a/link_layer=infiniband/lid=49151/guid=0",
                           "a/link_layer=infiniband/subnet_prefix=fe80::1", "a/link_layer=infiniband/pkeys=0x8000",
                           "a/link_layer=infiniband/lid=4/lid=4", "a/link_layer=infiniband/sm_sl=16",
                           "a/link_layer=infiniband/lid=49148/lmc=3"}) {
    const auto made = parse_declarations(text);
    ASSERT_FALSE(made) << text;
    EXPECT_NE(made.error().message.find("VERBENA_DEVICES"), std::string::npos);
  }
}

TEST(DeviceDeclaration, APlusSignBeginsTheNextPort) {
  const auto made = parse_declarations("eth0+eth1,lo");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(*made, (std::vector<DeviceDeclaration>{{.ports = {{"eth0"}, {"eth1"}}}, {.ports = {{"lo"}}}}));
}

TEST(DeviceDeclaration, APlusSignBetweenPkeysBeginsNoPort) {
  const auto made = parse_declarations(
      "a/link_layer=infiniband/lid=4/pkeys=0xffff+0x8001+b/pkeys=32769+0xffff/lid=8/link_layer=infiniband+c");
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_EQ(made->size(), 1U);
  const auto& ports = made->front().ports;
  ASSERT_EQ(ports.size(), 3U);
  EXPECT_EQ(ports[0].infiniband->pkeys, (std::vector<std::uint16_t>{0xffff, 0x8001}));
  EXPECT_EQ(ports[1].interface, "b");
  EXPECT_EQ(ports[1].infiniband->pkeys, (std::vector<std::uint16_t>{0x8001, 0xffff}));
  EXPECT_EQ(ports[1].infiniband->lid, 8);
  EXPECT_EQ(ports[2], PortDeclaration{"c"});
}

TEST(SubnetFile, WhatIsNoFileIsRefusedAndNotRead) {
  for (const auto* path : {"/tmp", "/dev/zero"}) {
    const auto read = read_subnet_file(path, {});
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().message.find(path), std::string::npos);
  }
}

TEST(DeviceDeclaration, PortsThatCannotStandTogetherAreRefused) {
  for (const auto* text : {"+", "a+", "+a", "a++b", "a+a", "a+b+a", "a+b/lid=4", "a+b+c+d+e+f+g+h+i",
                           "a/link_layer=infiniband/lid=4+a/lid=4/link_layer=infiniband"}) {
    const auto made = parse_declarations(text);
    ASSERT_FALSE(made) << text;
    EXPECT_NE(made.error().message.find("VERBENA_DEVICES"), std::string::npos);
  }
  EXPECT_TRUE(parse_declarations("a/link_layer=infiniband/lid=4+a/link_layer=infiniband/lid=5"));
  EXPECT_FALSE(parse_declarations("a/link_layer=infiniband/lid=4+a/link_layer=infiniband/lid=4/sm_lid=2"));
  EXPECT_FALSE(parse_declarations("a/link_layer=infiniband/lid=4/lmc=1+b/link_layer=infiniband/lid=5"));
}

TEST(DeviceDeclaration, APortWithoutAnInterfaceIsQuotedWithItsDevice) {
  for (const std::string text : {"+bka0", "a++b", "a+/lid=4", "+"}) {
    const auto made = parse_declarations("eth9," + text);
    ASSERT_FALSE(made) << text;
    EXPECT_NE(made.error().message.find('"' + text + '"'), std::string::npos) << made.error().message;
  }
}

TEST(LidMap, FindsTheAddressOfALid) {
  const auto map = parse_lid_map("8@10.0.0.2,16-23@fd00::3");
  ASSERT_TRUE(map);
  EXPECT_EQ(map->address_of(8), parse_gid("10.0.0.2"));
  EXPECT_EQ(map->address_of(23), parse_gid("fd00::3"));
  EXPECT_EQ(map->address_of(24), std::nullopt);
}

TEST(LidMap, RefusesWhatIsNoMap) {
  for (const auto* text : {"8", "8@", "0@10.0.0.2", "9-8@10.0.0.2", "8@host", "49152@10.0.0.2", "8@239.1.1.1",
                           "1-8@10.0.0.2,8@10.0.0.3", "x-9@10.0.0.2"}) {
    EXPECT_FALSE(parse_lid_map(text)) << text;
  }
  EXPECT_TRUE(parse_lid_map("1-8@10.0.0.2,8-9@10.0.0.2"));
}

TEST(LidMap, FindsEachLidWhateverTheOrder) {
  const auto map = parse_lid_map("30@10.0.0.3,10-20@10.0.0.2,1-2@10.0.0.1,12-14@10.0.0.2,20-25@10.0.0.2");
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(map->address_of(2), parse_gid("10.0.0.1"));
  EXPECT_EQ(map->address_of(3), std::nullopt);
  for (std::uint16_t lid = 10; lid <= 25; ++lid) EXPECT_EQ(map->address_of(lid), parse_gid("10.0.0.2")) << lid;
  EXPECT_EQ(map->address_of(26), std::nullopt);
  EXPECT_EQ(map->address_of(30), parse_gid("10.0.0.3"));
  EXPECT_EQ(map->address_of(31), std::nullopt);
}

TEST(SubnetFile, ChangesWhatWasDeclared) {
  InfinibandPort port;
  port.guid = 0x0002c90300000001;
  const auto subnet = parse_subnet_file("f",
                                        "# all\n\nlid 8@10.0.0.2 # far\nport verbena0 lid=4 lmc=1\n"
                                        "port 0002:c903:0000:0001 sm_lid=7\nport verbena1 lid=5\n",
                                        {});
  ASSERT_TRUE(subnet) << subnet.error().message;
  EXPECT_EQ(subnet->lids.address_of(8), parse_gid("10.0.0.2"));
  const auto made = configured(port, "verbena0", *subnet);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->lid, 4);
  EXPECT_EQ(made->lmc, 1);
  EXPECT_EQ(made->sm_lid, 7);
  EXPECT_EQ(made->guid, port.guid);
}

TEST(SubnetFile, NamesTheLineThatIsWrong) {
  for (const auto* line : {"switch 1", "port", "port verbena0 lid", "port verbena0 guid=0002c90300000001", "lid",
                           "lid 8@10.0.0.2 9", "lid 8", "port verbena0 lid=0"}) {
    const auto subnet = parse_subnet_file("f", std::string("\n") + line, {});
    ASSERT_FALSE(subnet) << line;
    EXPECT_NE(subnet.error().message.find("f:2"), std::string::npos) << subnet.error().message;
  }
}

TEST(SubnetFile, WhatChangesNothingIsSaidWithFileAndLine) {
  const std::vector<SubnetPort> ports{{.name = "verbena0", .guid = 0x0002c90300000001, .infiniband = true},
                                      {.name = "verbena1/1", .guid = 3, .infiniband = false}};
  const auto vain = [&](const char* text) {
    const auto subnet = parse_subnet_file("f", text, {});
    return subnet ? vain_words(*subnet, ports) : std::vector<std::string>{subnet.error().message};
  };
  EXPECT_TRUE(vain("port verbena0 lid=4\nport 0002:c903:0000:0001 lmc=1\n").empty());
  EXPECT_TRUE(vain("port 0002:c903:0000:0009 lid=4\n").empty()) << "that of another host";
  const auto unknown = vain("\nport verbena7 lid=4\n");
  ASSERT_EQ(unknown.size(), 1U);
  EXPECT_TRUE(unknown[0].starts_with("f:2: \"verbena7\" names no port")) << unknown[0];
  EXPECT_NE(unknown[0].find("verbena0, verbena1/1"), std::string::npos) << unknown[0];
  const auto ethernet = vain("port verbena1/1 lid=4\n");
  ASSERT_EQ(ethernet.size(), 1U);
  EXPECT_TRUE(ethernet[0].starts_with("f:1: \"verbena1/1\" is an Ethernet port")) << ethernet[0];
  const auto nothing = vain("port verbena0\n");
  ASSERT_EQ(nothing.size(), 1U);
  EXPECT_TRUE(nothing[0].starts_with("f:1: ")) << nothing[0];
}

TEST(SubnetFile, AKeyThatComesTwiceForAPortIsSaidAndTheLaterCounts) {
  const std::vector<SubnetPort> ports{{.name = "verbena0", .guid = 0x0002c90300000001, .infiniband = true}};
  const auto subnet = parse_subnet_file("f", "port verbena0 lid=4 sm_lid=2 lid=6\nport 0002c90300000001 sm_lid=3", {});
  ASSERT_TRUE(subnet) << subnet.error().message;
  const auto vain = vain_words(*subnet, ports);
  ASSERT_EQ(vain.size(), 2U);
  EXPECT_TRUE(vain[0].starts_with("f:1: lid=6 ")) << vain[0];
  EXPECT_NE(vain[0].find("lid=4 of f:1"), std::string::npos) << vain[0];
  EXPECT_TRUE(vain[1].starts_with("f:2: sm_lid=3 ")) << vain[1];
  EXPECT_NE(vain[1].find("sm_lid=2 of f:1"), std::string::npos) << vain[1];
  InfinibandPort port;
  port.guid = 0x0002c90300000001;
  EXPECT_EQ(configured(port, "verbena0", *subnet)->lid, 6);
}

TEST(SubnetFile, RefusesAPortThatLineAndDeclarationMakeTogether) {
  InfinibandPort port;
  port.lid = 5;
  const auto subnet = parse_subnet_file("f", "port verbena0 lmc=1", {});
  ASSERT_TRUE(subnet);
  EXPECT_FALSE(configured(port, "verbena0", *subnet));
}

TEST(Routes, APacketHasTheLidThatItsPortHasNow) {
  Routes routes;
  routes.infiniband = {{}, {.lids = {8, 11}, .udp_ports = {}}, {.lids = {4, 4}, .udp_ports = {}}};
  const auto from = [&](std::uint16_t port, std::uint8_t path_bits) {
    return source_lid(routes, {.port = port, .path_bits = path_bits});
  };
  EXPECT_EQ(from(1, 0), 8);
  EXPECT_EQ(from(1, 3), 11);
  EXPECT_EQ(from(2, 0), 4);
  EXPECT_EQ(from(2, 1), 4) << "bits that the LMC of now leaves no room for";
}

TEST(Routes, ALidIsHereUnlessTheMapNamesAnotherHost) {
  Routes routes;
  routes.local.push_back(*parse_gid("10.0.0.1"));
  routes.lids = *parse_lid_map("8@10.0.0.2,9@10.0.0.1");
  EXPECT_FALSE(is_lid_here(routes, 8));
  EXPECT_TRUE(is_lid_here(routes, 9));
  EXPECT_TRUE(is_lid_here(routes, 10));
}

TEST(Routes, ALidIsBelievedFromItsHostAlone) {
  Routes routes;
  routes.local = {*parse_gid("10.0.0.1"), *parse_gid("10.0.0.11")};
  routes.lids = *parse_lid_map("8@10.0.0.2,9@10.0.0.1");
  EXPECT_TRUE(is_source_of_lid(routes, 8, *parse_gid("10.0.0.2")));
  EXPECT_FALSE(is_source_of_lid(routes, 8, *parse_gid("10.0.0.3")));
  EXPECT_FALSE(is_source_of_lid(routes, 8, *parse_gid("10.0.0.1")));
  for (const std::uint16_t here : {std::uint16_t{9}, std::uint16_t{10}}) {
    EXPECT_TRUE(is_source_of_lid(routes, here, *parse_gid("10.0.0.11"))) << here;
    EXPECT_TRUE(is_source_of_lid(routes, here, *parse_gid("127.0.0.1"))) << here;
    EXPECT_FALSE(is_source_of_lid(routes, here, *parse_gid("10.0.0.2"))) << here;
  }
}

struct Uncounted final : transport::DropCounter {
  void count(Drop, std::uint64_t) noexcept override {}
};

TEST(Routes, AGroupIsSentToFromTheAddressThatTheMapHasForThePort) {
  Uncounted drops;
  const auto open = [&](const char* address) {
    return std::move(
        *transport::UdpPort::open({.address = *parse_gid(address), .interface_index = 1, .port = 0}, drops));
  };
  const auto ipv4 = open("127.0.0.1");
  const auto ipv6 = open("::1");
  Envelope envelope;
  envelope.link = {.destination_lid = 0xc005, .port = 1};
  for (const auto& [map, by] : {std::pair("8@::1", ipv6.get()), std::pair("8@127.0.0.1", ipv4.get()),
                                std::pair("9@10.0.0.2", ipv4.get()), std::pair("8@10.0.0.2", ipv4.get())}) {
    Routes routes;
    routes.lids = *parse_lid_map(map);
    routes.infiniband = {{}, {.lids = {8, 8}, .udp_ports = {ipv4.get(), ipv6.get()}}};
    const Carrier carrier = find_carrier(routes, envelope);
    EXPECT_EQ(carrier.udp_port, by) << map;
    EXPECT_EQ(carrier.destination, carrier_group(0xc005, by == ipv4.get())) << map;
  }
}

TEST(Routes, EachMulticastLidHasAGroupOfItsOwn) {
  EXPECT_EQ(to_string(carrier_group(0xc005, true)), "::ffff:239.193.192.5");
  EXPECT_EQ(to_string(carrier_group(0xc005, false)), "ff05::4942:c005");
  EXPECT_EQ(twin_of_carrier_group(carrier_group(0xc005, true)), carrier_group(0xc005, false));
  EXPECT_EQ(twin_of_carrier_group(carrier_group(0xfffe, false)), carrier_group(0xfffe, true));
}

}  // namespace
}  // namespace verbena::device
