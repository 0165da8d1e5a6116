// What the tests of this room share: bytes from hex, packets from a seed, whole packets as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "base/envelope.h"
#include "wire/packet.h"

namespace verbena::wire::test {

using Bytes = std::vector<std::byte>;
using Random = std::mt19937_64;

// White space between the digits is skipped.
Bytes bytes_of_hex(std::string_view hex);

// Every opcode of the table, in order.
std::vector<Opcode> known_opcodes();

Bytes random_bytes(Random& random, std::size_t size);

// All fields of all headers that the opcode carries are filled; `payload` is kept as it is.
Packet random_packet(Random& random, Opcode opcode, std::span<const std::byte> payload);

// Both ends of the same family.
Envelope random_envelope(Random& random, bool ipv4);

// Headers, payload and pad; with has_icrc also four bytes in place of an ICRC.
Bytes whole(const Packet& packet, bool has_icrc);

// The same, with the ICRC that belongs to the network header.
Bytes whole_with_icrc(const Packet& packet, std::span<const std::byte> network_header);

// Field by field, of the headers that the opcode carries; payloads by content.
bool same(const Packet& a, const Packet& b);

}  // namespace verbena::wire::test
