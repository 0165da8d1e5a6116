// What other processes of the host say: hello messages, lines of /proc/net/unix, counter pages.
//
// Input: one byte that chooses the reader, then what it reads. Holds: what decodes as a hello encodes back to the same
// 24 bytes' meaning; a slot that was read is one that is written; any counter page is survived.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "host/counter_page.h"
#include "host/hello.h"
#include "host/slot_name.h"
#include "require.h"

namespace verbena::host {
namespace {

using fuzz::require;

void check_hello(std::span<const std::byte> input) {
  const auto hello = decode_hello(input);
  if (hello) require(decode_hello(encode(*hello)) == hello, "a hello reads back");
}

void check_line(std::string_view line) {
  if (const auto listing = parse_unix_socket_line(line)) {
    require(parse_slot_name(slot_name(listing->slot)) == listing->slot, "a slot reads back");
  }
  if (const auto slot = parse_slot_name(line)) require(slot_name(*slot) == line, "a name is written in one way only");
}

void check_counter_page(std::span<const std::byte> input) {
  std::vector<std::uint64_t> aligned((input.size() + 7) / 8);
  const auto page = std::as_writable_bytes(std::span(aligned));
  std::copy(input.begin(), input.end(), page.begin());
  const auto reading = read_counter_page(page);
  if (!reading) return;
  for (const auto& block : reading->blocks) require(!block.name.empty(), "a block has a name");
}

// A good page with bytes of the input put over it: two bytes of place, one of value.
void check_damaged_page(std::span<const std::byte> input) {
  constexpr std::array<CounterRow, 2> kRows{{{"one", "packets", Side::kSender, ""}, {"two", "bytes", Side::kBoth, ""}}};
  std::vector<std::uint64_t> aligned(4096 / 8);
  const auto page = std::as_writable_bytes(std::span(aligned));
  CounterPageWriter writer(page, {.pid = 1, .start_time_ns = 2, .process_name = "fuzz"});
  for (const auto* name : {"verbena0", "verbena1"}) require(writer.add_block(name, kRows).has_value(), "there is room");
  for (std::size_t at = 0; at + 3 <= input.size(); at += 3) {
    std::uint16_t place = 0;
    std::memcpy(&place, input.data() + at, sizeof place);
    page[place % page.size()] = input[at + 2];
  }
  static_cast<void>(read_counter_page(page).has_value());
}

}  // namespace
}  // namespace verbena::host

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto input = std::as_bytes(std::span(data, size)).subspan(1);
  switch (data[0] % 4) {
    case 0:
      verbena::host::check_hello(input);
      break;
    case 1:
      verbena::host::check_line({reinterpret_cast<const char*>(data + 1), size - 1});
      break;
    case 2:
      verbena::host::check_counter_page(input);
      break;
    case 3:
      verbena::host::check_damaged_page(input);
      break;
  }
  return 0;
}
