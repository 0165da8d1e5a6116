#include "host/slot_name.h"

#include "host/unix_socket_line.h"

namespace verbena::host {
namespace {

constexpr std::string_view kPrefix{"\0verbena/1/slot/", 16};
static_assert(kProtocolVersion == 1, "the prefix names the version");

}  // namespace

std::string slot_name(Slot slot) {
  return std::string(kPrefix) + std::to_string(slot.value());
}

std::optional<Slot> parse_slot_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto number = parse_name_number(name.substr(kPrefix.size()));
  if (!number || *number < kFirstSlot || *number > kLastSlot) return std::nullopt;
  return Slot(static_cast<std::uint8_t>(*number));
}

std::optional<SlotListing> parse_unix_socket_line(std::string_view line) {
  const auto socket = parse_listening_socket(line);
  const auto slot = socket ? parse_slot_name(socket->name) : std::nullopt;
  if (!slot) return std::nullopt;
  return SlotListing{*slot, socket->inode};
}

}  // namespace verbena::host
