#include "host/lid_name.h"

#include <array>
#include <charconv>

#include "host/slot_name.h"
#include "host/unix_socket_line.h"

namespace verbena::host {
namespace {

constexpr std::string_view kPrefix{"\0verbena/1/lid/", 15};
static_assert(kProtocolVersion == 1, "the prefix names the version");
constexpr std::size_t kGuidDigits = 16;
constexpr std::size_t kMostWords = 5;
constexpr std::uint32_t kLastUnicastLid = 0xbfff;

std::string guid_digits(std::uint64_t guid) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(kGuidDigits, '0');
  for (std::size_t i = 0; i < kGuidDigits; ++i) text[i] = kDigits[(guid >> (60 - 4 * i)) & 0xf];
  return text;
}

std::optional<std::uint64_t> parse_guid(std::string_view text) {
  std::uint64_t guid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), guid, 16);
  if (text.size() != kGuidDigits || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return guid;
}

}  // namespace

std::string lid_name(const LidHolder& holder) {
  std::string name = std::string(kPrefix) + std::to_string(holder.first) + "/" + std::to_string(holder.last) + "/" +
                     guid_digits(holder.guid) + "/" + std::to_string(holder.pid);
  if (holder.copy != 0) name += "/" + std::to_string(holder.copy);
  return name;
}

std::optional<LidHolder> parse_lid_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::array<std::string_view, kMostWords> words;
  std::size_t count = 0;
  for (bool more = true; more; ++count) {
    if (count == kMostWords) return std::nullopt;
    const auto end = name.find('/');
    words[count] = name.substr(0, end);
    more = end != std::string_view::npos;
    if (more) name.remove_prefix(end + 1);
  }
  if (count < kMostWords - 1) return std::nullopt;
  const auto first = parse_name_number(words[0]);
  const auto last = parse_name_number(words[1]);
  const auto guid = parse_guid(words[2]);
  const auto pid = parse_name_number(words[3]);
  const auto copy = count == kMostWords ? parse_name_number(words[4]) : 0;
  if (!first || !last || !guid || !pid || !copy || (count == kMostWords && *copy == 0)) return std::nullopt;
  if (*first == 0 || *first > *last || *last > kLastUnicastLid) return std::nullopt;
  return LidHolder{static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last), *guid, *pid, *copy};
}

std::optional<LidHolder> parse_lid_line(std::string_view line) {
  const auto socket = parse_listening_socket(line);
  return socket ? parse_lid_name(socket->name) : std::nullopt;
}

}  // namespace verbena::host
