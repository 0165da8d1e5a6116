// The parser of IP and UDP headers, over anything a capture may hold.
//
// Holds: spans stay within the input; what NetworkHeader makes of the envelope read agrees with the input in all that
// an envelope says; it reads back the same.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "require.h"
#include "wire/network_header.h"

namespace verbena::wire {
namespace {

using fuzz::require;

void check(std::span<const std::byte> input) {
  const auto view = parse_network_header(input);
  if (!view) return;
  require(view->header.data() == input.data(), "the header stands at the front");
  require(view->header.size() + view->udp_payload.size() <= input.size(), "nothing past the end");
  // An IPv6 packet between IPv4-mapped addresses is the one thing that an envelope cannot tell.
  const bool was_ipv4 = view->header.size() == kIpv4Size + kUdpSize;
  if (was_ipv4 != is_ipv4(view->envelope)) return;

  const NetworkHeader made(view->envelope, view->udp_payload.size());
  require(made.bytes().size() == view->header.size(), "sizes agree");
  std::vector<std::byte> again(made.bytes().begin(), made.bytes().end());
  again.insert(again.end(), view->udp_payload.begin(), view->udp_payload.end());
  const auto second = parse_network_header(again);
  require(second.has_value(), "what was made is read");
  require(second->envelope == view->envelope, "the envelope survives");
  require(second->checksum_valid, "the checksum is right");
  require(second->udp_payload.size() == view->udp_payload.size(), "the payload keeps its size");
}

}  // namespace
}  // namespace verbena::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  verbena::wire::check(std::as_bytes(std::span(data, size)));
  return 0;
}
