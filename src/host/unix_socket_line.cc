#include "host/unix_socket_line.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace verbena::host {
namespace {

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

std::optional<ListeningSocket> parse_listening_socket(std::string_view line) {
  // Num: RefCount Protocol Flags Type St Inode Path
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.remove_suffix(1);
  std::array<std::string_view, 7> words;
  for (auto& word : words) word = take_word(line);
  const auto flags = parse_number<std::uint32_t>(words[3], 16);
  const auto inode = parse_number<std::uint64_t>(words[6], 10);
  if (!flags || (*flags & kListening) == 0 || !inode) return std::nullopt;
  const auto path = take_word(line);
  if (path.empty() || path.front() != '@') return std::nullopt;
  std::string name(path);
  name.front() = '\0';
  return ListeningSocket{std::move(name), *inode};
}

std::optional<std::uint32_t> parse_name_number(std::string_view text) {
  if (text.empty() || (text.front() == '0' && text.size() > 1)) return std::nullopt;
  return parse_number<std::uint32_t>(text, 10);
}

}  // namespace verbena::host
