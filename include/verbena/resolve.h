// From what a person writes to a Destination: "10.0.0.2,dscp=26,netdev=eth0", "storage-7,sl=3,rate=25g".
//
//   destination = place *( "," key "=" value )
//   place       = IPv4 / IPv6 / IPv6 "%" interface / GID / host name / "lid=" number
//   key         = lid gid src netdev port tc dscp sl flow hops rate pathbits
//
// Numbers are decimal, or hexadecimal after 0x. Each key stands once; tc and dscp exclude each other. A place that is a
// LID may have a GID beside it ("lid=7,gid=fe80::1"), for InfiniBand ports that demand a GRH.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "verbena/deadline.h"
#include "verbena/destination.h"
#include "verbena/export.h"
#include "verbena/result.h"

namespace verbena {

// How the network is to treat what goes to a destination.
struct ServiceClass {
  std::uint8_t traffic_class = 0;  // DSCP << 2 | ECN
  std::uint8_t service_level = 0;
  std::uint8_t hop_limit = 64;
  std::uint8_t static_rate = 0;  // an ibv_rate

  friend bool operator==(const ServiceClass&, const ServiceClass&) = default;
};

VERBENA_API Destination with(Destination destination, const ServiceClass& service) noexcept;

// Without asking a name service. Errors: kInvalidArgument with the key, the value and what it may be; kNotFound for an
// interface that is not there. A host name is refused: resolve_destination() takes it.
VERBENA_API Result<Destination> parse_destination(std::string_view text);

// What parse_destination() reads back as the same.
VERBENA_API std::string to_text(const Destination& destination);

struct HostAddress {
  Gid gid;
  std::uint32_t netdev = 0;  // of a link-local address, where the name service says

  friend bool operator==(const HostAddress&, const HostAddress&) = default;
};

// May block for as long as it likes.
using HostLookup = std::function<Result<std::vector<HostAddress>>(const std::string& name)>;

// All addresses of a host, best first: as the system's name service ranks them, but link-local behind all that can be
// routed, and loopback last. The question runs on a thread of its own, which outlives a deadline that passes; who asks
// for the same name meanwhile waits for the same answer. Errors: kNotFound (no such host), kUnavailable (the name
// service does not answer), kTimedOut, kExhausted (too many questions without an answer).
VERBENA_API Result<std::vector<HostAddress>> resolve_host(const std::string& name, Deadline deadline);
VERBENA_API Result<std::vector<HostAddress>> resolve_host(const std::string& name, Deadline deadline,
                                                          const HostLookup& lookup);

// As parse_destination(), and one destination for each address of a host name, best first.
VERBENA_API Result<std::vector<Destination>> resolve_destination(std::string_view text, Deadline deadline);

// The UDP source port that a RoCE v2 device gives to datagrams of this flow label; it is what routers choose a path by.
// 0 stands for no label: the device then takes a port of its own choice.
VERBENA_API std::uint16_t udp_source_port(std::uint32_t flow_label) noexcept;

// The same destination by `paths` paths: with flow labels whose source ports all differ and lie evenly in the range
// (0xC000 to 0xFFFF), however many are taken from the front. `flow_hash` moves the whole set, so that senders differ.
// Errors: kInvalidArgument for 0 paths or more than there are ports (16384).
VERBENA_API Result<std::vector<Destination>> spread(const Destination& destination, std::size_t paths,
                                                    std::uint64_t flow_hash);

}  // namespace verbena
