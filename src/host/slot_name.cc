#include "host/slot_name.h"

#include <array>
#include <charconv>

namespace verbena::host {
namespace {

constexpr std::string_view kPrefix{"\0verbena/1/slot/", 16};
static_assert(kProtocolVersion == 1, "the prefix names the version");

// Flags of /proc/net/unix: __SO_ACCEPTCON, a listening socket.
constexpr std::uint32_t kListening = 0x10000;

// Takes the next word off `line`.
std::string_view take_word(std::string_view& line) {
  const auto begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  line.remove_prefix(begin);
  const auto end = std::min(line.find(' '), line.size());
  const auto word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

template <class Number>
std::optional<Number> parse_number(std::string_view text, int base) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::string slot_name(Slot slot) {
  return std::string(kPrefix) + std::to_string(slot.value());
}

std::optional<Slot> parse_slot_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto digits = name.substr(kPrefix.size());
  if (digits.empty() || digits.front() == '0') return std::nullopt;
  const auto number = parse_number<unsigned>(digits, 10);
  if (!number || *number < kFirstSlot || *number > kLastSlot) return std::nullopt;
  return Slot(static_cast<std::uint8_t>(*number));
}

std::optional<SlotListing> parse_unix_socket_line(std::string_view line) {
  // Num: RefCount Protocol Flags Type St Inode Path
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.remove_suffix(1);
  std::array<std::string_view, 7> words;
  for (auto& word : words) word = take_word(line);
  const auto flags = parse_number<std::uint32_t>(words[3], 16);
  const auto inode = parse_number<std::uint64_t>(words[6], 10);
  if (!flags || (*flags & kListening) == 0 || !inode) return std::nullopt;
  auto path = take_word(line);
  if (path.empty() || path.front() != '@') return std::nullopt;
  std::string name(path);
  name.front() = '\0';
  const auto slot = parse_slot_name(name);
  if (!slot) return std::nullopt;
  return SlotListing{*slot, *inode};
}

}  // namespace verbena::host
