#include "verbs/sysfs_tree.h"

#include <gtest/gtest.h>

namespace verbena::verbs {
namespace {

using Kind = SysfsNode::Kind;

SysfsDevice sample() {
  SysfsDevice device;
  device.name = "verbena0";
  device.node_guid = 0x0200'00ff'fe00'0001;
  device.firmware = "0.1.0";
  device.cpu_mask = "f";
  device.cpu_list = "0-3";
  SysfsPort port;
  port.interface = "eth7";
  port.state = 4;
  port.phys_state = 5;
  port.rate = "10 Gb/sec (1X QDR)";
  port.pkeys = {0xffff};
  port.gids = {Gid{}, Gid::from_ipv4(0x0a000001), Gid{}};
  device.ports = {port};
  return device;
}

std::string text_at(const SysfsDevice& device, std::string_view path) {
  const auto node = find_node(device, path);
  return node && node->kind == Kind::kFile ? node->text : "(no file)";
}

TEST(SysfsTree, TellsGidTypesAsTheKernelWritesThem) {
  EXPECT_EQ("RoCE v2\n", text_at(sample(), "ports/1/gid_attrs/types/1"));
  EXPECT_EQ("eth7\n", text_at(sample(), "ports/1/gid_attrs/ndevs/1"));
  EXPECT_EQ("0000:0000:0000:0000:0000:ffff:0a00:0001\n", text_at(sample(), "ports/1/gids/1"));
}

TEST(SysfsTree, AttributesOfAnEmptyGidIndexExistAndCannotBeRead) {
  for (const char* path : {"ports/1/gid_attrs/types/0", "ports/1/gid_attrs/ndevs/2"}) {
    const auto node = find_node(sample(), path);
    ASSERT_TRUE(node) << path;
    EXPECT_EQ(Kind::kEmptySlot, node->kind) << path;
  }
  EXPECT_EQ("0000:0000:0000:0000:0000:0000:0000:0000\n", text_at(sample(), "ports/1/gids/0"));
}

TEST(SysfsTree, WhatIsNotThereIsNotFound) {
  for (const char* path : {"ports/2/state", "ports/1/gids/3", "ports/1/gids/-1", "ports/1/gids/01", "ports/1/gids/1x",
                           "ports/1/gid_attrs/other/0", "nothing", "node_guid/x", "ports/1/state/x",
                           "tc/1/traffic_class", "device/net/eth8/address", "device/vendor"}) {
    EXPECT_FALSE(find_node(sample(), path)) << path;
  }
}

TEST(SysfsTree, TellsOfTheDeviceAndThePort) {
  EXPECT_EQ("0200:00ff:fe00:0001\n", text_at(sample(), "node_guid"));
  EXPECT_EQ("1: CA\n", text_at(sample(), "node_type"));
  EXPECT_EQ("4: ACTIVE\n", text_at(sample(), "ports/1/state"));
  EXPECT_EQ("5: LinkUp\n", text_at(sample(), "ports/1/phys_state"));
  EXPECT_EQ("Ethernet\n", text_at(sample(), "ports/1/link_layer"));
  EXPECT_EQ("0x0\n", text_at(sample(), "ports/1/lid"));
  EXPECT_EQ("0xffff\n", text_at(sample(), "ports/1/pkeys/0"));
  EXPECT_EQ("-1\n", text_at(sample(), "device/numa_node"));
  EXPECT_EQ("f\n", text_at(sample(), "device/local_cpus"));
}

TEST(SysfsTree, EveryEntryOfEveryDirectoryCanBeFound) {
  const SysfsDevice device = sample();
  std::vector<std::string> open{""};
  std::size_t seen = 0;
  while (!open.empty()) {
    const std::string path = open.back();
    open.pop_back();
    const auto node = find_node(device, path);
    ASSERT_TRUE(node) << path;
    ++seen;
    for (const std::string& entry : node->entries) open.push_back(path.empty() ? entry : path + "/" + entry);
  }
  EXPECT_GT(seen, 30u);
}

TEST(SysfsTree, TheInterfacesOwnFilesAreElsewhere) {
  SysfsDevice device = sample();
  auto node = find_node(device, "device/net/eth7/address");
  ASSERT_TRUE(node);
  EXPECT_EQ(Kind::kElsewhere, node->kind);
  EXPECT_EQ("/sys/class/net/eth7/address", node->text);
  device.has_parent = true;
  node = find_node(device, "device/numa_node");
  ASSERT_TRUE(node);
  EXPECT_EQ("/sys/class/net/eth7/device/numa_node", node->text);
  node = find_node(device, "device");
  ASSERT_TRUE(node && node->is_link);
}

TEST(SysfsTree, EachPortHasItsOwnFiles) {
  SysfsDevice device = sample();
  SysfsPort second = device.ports.front();
  second.interface = "eth8";
  second.state = 1;
  second.gids = {Gid{}, Gid{}, Gid::from_ipv4(0x0a000002)};
  device.ports.push_back(second);
  EXPECT_EQ((std::vector<std::string>{"1", "2"}), find_node(device, "ports")->entries);
  EXPECT_EQ((std::vector<std::string>{"eth7", "eth8"}), find_node(device, "device/net")->entries);
  EXPECT_EQ("4: ACTIVE\n", text_at(device, "ports/1/state"));
  EXPECT_EQ("1: DOWN\n", text_at(device, "ports/2/state"));
  EXPECT_EQ("eth8\n", text_at(device, "ports/2/gid_attrs/ndevs/2"));
  EXPECT_EQ(Kind::kEmptySlot, find_node(device, "ports/1/gid_attrs/ndevs/2")->kind);
  EXPECT_EQ("/sys/class/net/eth8/address", find_node(device, "device/net/eth8/address")->text);
  for (const char* path : {"ports/0", "ports/3", "ports/02/state", "device/net/eth9"}) {
    EXPECT_FALSE(find_node(device, path)) << path;
  }
}

TEST(SysfsTree, SplitsThePathsOfAllThreeClasses) {
  SysfsPath split;
  ASSERT_TRUE(split_sysfs_path("/sys/class/infiniband/verbena0/ports/1/state", split));
  EXPECT_EQ("verbena0", split.device);
  EXPECT_EQ("ports/1/state", split.below);
  ASSERT_TRUE(split_sysfs_path("/sys/class/infiniband_verbs/verbena1", split));
  EXPECT_EQ("verbena1", split.device);
  EXPECT_EQ("", split.below);
  ASSERT_TRUE(split_sysfs_path("/sys/devices/virtual/infiniband//verbena0//fw_ver", split));
  EXPECT_EQ("verbena0", split.device);
  EXPECT_EQ("fw_ver", split.below);
  ASSERT_TRUE(split_sysfs_path("/sys/class/infiniband", split));
  EXPECT_EQ("", split.device);
}

TEST(SysfsTree, TheCharacterDeviceHasTheNameOfTheDevice) {
  SysfsPath split;
  ASSERT_TRUE(split_sysfs_path("/dev/infiniband/verbena0", split));
  EXPECT_TRUE(split.character_device);
  EXPECT_EQ("verbena0", split.device);
  EXPECT_FALSE(split_sysfs_path("/dev/infiniband/", split));
  EXPECT_TRUE(may_be_our_path("/dev/infiniband/verbena0"));
  EXPECT_FALSE(may_be_our_path("/dev/null"));
  EXPECT_FALSE(may_be_our_path("/d"));
}

TEST(SysfsTree, OtherPathsAreNotOurs) {
  SysfsPath split;
  for (const char* path : {"/sys/class/infiniband_mad/umad0", "/sys/class/infinibandx", "/sys/class/net/eth0", "",
                           "/sys/class/", "sys/class/infiniband/verbena0", "/proc/self"}) {
    EXPECT_FALSE(split_sysfs_path(path, split)) << path;
  }
}

TEST(SysfsTree, TheCheapTestSeesTheBeginningOnly) {
  EXPECT_TRUE(may_be_our_path("/sys/class/infiniband"));
  EXPECT_FALSE(may_be_our_path("/sys"));
  EXPECT_FALSE(may_be_our_path(""));
  EXPECT_FALSE(may_be_our_path("/s"));
  EXPECT_FALSE(may_be_our_path(nullptr));
}

}  // namespace
}  // namespace verbena::verbs
