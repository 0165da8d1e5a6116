#include "ah/destination_key.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "ah/ah_key.h"

namespace verbena::ah {
namespace {

// Each field alone, at its least and its most.
std::vector<Destination> one_field_each() {
  std::vector<Destination> all(1);
  const auto add = [&](auto change) {
    Destination destination;
    change(destination);
    all.push_back(destination);
  };
  for (std::size_t i = 0; i < 16; ++i) {
    for (const std::uint8_t value : {std::uint8_t{1}, std::uint8_t{0x80}}) {
      add([&](Destination& d) { d.gid.bytes[i] = value; });
      add([&](Destination& d) { d.source.bytes[i] = value; });
    }
  }
  for (std::uint32_t bit = 0; bit < 20; ++bit) add([&](Destination& d) { d.flow_label = 1U << bit; });
  for (std::uint32_t bit = 0; bit < 32; ++bit) add([&](Destination& d) { d.netdev = 1U << bit; });
  for (unsigned bit = 0; bit < 16; ++bit) add([&](Destination& d) { d.lid = static_cast<std::uint16_t>(1U << bit); });
  for (unsigned bit = 0; bit < 8; ++bit) {
    const auto value = static_cast<std::uint8_t>(1U << bit);
    add([&](Destination& d) { d.traffic_class = value; });
    add([&](Destination& d) { d.service_level = value; });
    add([&](Destination& d) { d.hop_limit = static_cast<std::uint8_t>(64 ^ value); });
    add([&](Destination& d) { d.static_rate = value; });
    add([&](Destination& d) { d.source_path_bits = value; });
    if (value != 1) add([&](Destination& d) { d.port = value; });  // 1 is the own port
  }
  return all;
}

TEST(DestinationKey, EveryFieldCounts) {
  const std::vector<Destination> all = one_field_each();
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < all.size(); ++j) {
      EXPECT_EQ(key_of(all[i], 1) == key_of(all[j], 1), i == j) << i << " " << j;
    }
  }
}

TEST(DestinationKey, EveryFieldSpreads) {
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0x123456789abcdef}}) {
    std::set<std::uint64_t> hashes;
    const std::vector<Destination> all = one_field_each();
    for (const Destination& destination : all) hashes.insert(hash_of(key_of(destination, 1), seed));
    EXPECT_EQ(hashes.size(), all.size());
  }
}

// Whatever the constants are, a peer that knows them can choose no addresses that share a hash.
TEST(DestinationKey, AddressesThatCancelAConstantDoNotCollide) {
  for (const std::uint64_t constant : {0xa0761d6478bd642fULL, 0xe7037ed1a0b428dbULL}) {
    for (const std::size_t half : {std::size_t{0}, std::size_t{8}}) {
      std::set<std::uint64_t> hashes;
      for (std::uint8_t i = 0; i < 200; ++i) {
        Destination destination;
        std::memcpy(destination.gid.bytes.data() + half, &constant, sizeof constant);
        destination.gid.bytes[8 - half + 3] = i;
        hashes.insert(hash_of(key_of(destination, 1), 0x123456789abcdef));
      }
      EXPECT_EQ(hashes.size(), 200U);
    }
  }
}

// Neighbouring addresses, labels and classes are what a cluster has: they must fill a small table evenly.
TEST(DestinationKey, NeighboursFillATableEvenly) {
  constexpr std::size_t kPlaces = 1024;
  const auto most_in_one_place = [](auto change) {
    std::vector<int> places(kPlaces);
    for (std::uint32_t i = 0; i < kPlaces; ++i) {
      Destination destination;
      destination.gid = Gid::from_ipv4(0x0a000000);
      change(destination, i);
      ++places[hash_of(key_of(destination, 1), 42) % kPlaces];
    }
    return *std::max_element(places.begin(), places.end());
  };
  // Thrown at random, 1024 balls in 1024 places leave 5 to 7 in the fullest.
  constexpr int kMost = 10;
  EXPECT_LE(most_in_one_place([](Destination& d, std::uint32_t i) { d.gid = Gid::from_ipv4(0x0a000000 + i); }), kMost);
  EXPECT_LE(most_in_one_place([](Destination& d, std::uint32_t i) { d.gid = Gid::from_ipv4(0x0a000000 + (i << 16)); }),
            kMost);
  EXPECT_LE(most_in_one_place([](Destination& d, std::uint32_t i) { d.flow_label = i; }), kMost);
  EXPECT_LE(most_in_one_place([](Destination& d, std::uint32_t i) { d.flow_label = i << 10; }), kMost);
  EXPECT_LE(most_in_one_place([](Destination& d, std::uint32_t i) { d.netdev = i; }), kMost);
  EXPECT_LE(most_in_one_place([](Destination& d, std::uint32_t i) {
              d.traffic_class = static_cast<std::uint8_t>(i);
              d.service_level = static_cast<std::uint8_t>(i >> 8);
            }),
            kMost);
}

TEST(DestinationKey, ReadsBack) {
  for (Destination destination : one_field_each()) {
    Destination back = destination_of(key_of(destination, 1));
    if (destination.port == 0) destination.port = 1;
    EXPECT_EQ(back, destination);
  }
}

TEST(DestinationKey, OnlyTwentyBitsOfTheFlowLabelCount) {
  Destination a;
  Destination b;
  a.flow_label = 0xfff12345;
  b.flow_label = 0x12345;
  EXPECT_EQ(key_of(a, 1), key_of(b, 1));
  EXPECT_EQ(destination_of(key_of(a, 1)).traffic_class, 0);
}

TEST(DestinationKey, PortZeroIsTheOwnPort) {
  Destination a;
  Destination b;
  b.port = 2;
  EXPECT_EQ(key_of(a, 2), key_of(b, 2));
  EXPECT_FALSE(key_of(a, 1) == key_of(b, 1));
}

TEST(AhKey, DomainSourceAndTypeCount) {
  const ibv_pd first{};
  const ibv_pd second{};
  AhKey base;
  base.domain = &first;
  std::vector<AhKey> all(9, base);
  all[1].domain = &second;
  all[2].source = Gid::from_ipv4(1);
  all[3].source_type = GidType::kRoceV1;
  all[4].port = 2;
  all[5].netdev = 1;
  all[6].global = false;
  all[7].lid = 1;
  all[8].flow_label = 1;
  std::set<std::size_t> hashes;
  for (std::size_t i = 0; i < all.size(); ++i) {
    hashes.insert(AhKeyHash{}(all[i]));
    for (std::size_t j = 0; j < all.size(); ++j) EXPECT_EQ(all[i] == all[j], i == j);
  }
  EXPECT_EQ(hashes.size(), all.size());
}

}  // namespace
}  // namespace verbena::ah
