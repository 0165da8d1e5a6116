// The parser of flow attributes, and the steering that its rule does.
//
// Input: two bytes, the length of the attributes; the attributes with their specifications; the rest is a frame. Holds:
// nothing is read past the end of either, a refusal says an errno and a sentence, and a rule that is read takes the
// frame or not, in a table as by itself.
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/flow_table.h"
#include "require.h"
#include "verbs/flow_attributes.h"
#include "wire/ethernet_frame.h"

namespace verbena {
namespace {

void check(std::span<const std::byte> attributes, std::span<const std::byte> frame) {
  // In memory of their own, so that a sanitizer sees what is read behind them.
  const std::vector<std::byte> flow(attributes.begin(), attributes.end());
  const std::vector<std::byte> bytes(frame.begin(), frame.end());
  const auto rule = verbs::parse_flow(flow);
  if (!rule) {
    fuzz::require(rule.error().system_errno == EINVAL || rule.error().system_errno == EOPNOTSUPP, "an errno");
    fuzz::require(!rule.error().message.empty(), "a sentence");
    return;
  }
  const auto fields = wire::read_frame(bytes);
  fuzz::require(fields.has_value() == (bytes.size() >= wire::kEthernetSize), "a frame has an Ethernet header");
  if (!fields) return;
  engine::FlowTable table;
  table.add(1, Qpn(5), *rule);
  std::size_t copies = 0;
  const bool dropped = table.steer(*fields, [&copies](Qpn) { ++copies; });
  fuzz::require(rule->takes(*fields) == (copies == 1 || dropped), "the table does what the rule says");
  fuzz::require(copies <= 1 && !(dropped && copies != 0), "one rule, one copy");
}

}  // namespace
}  // namespace verbena

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto input = std::as_bytes(std::span(data, size)).subspan(2);
  const std::size_t length = std::min<std::size_t>(data[0] + 256U * data[1], input.size());
  verbena::check(input.first(length), input.subspan(length));
  return 0;
}
