#include "host/lid_name.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "host/slot_name.h"
#include "host/unix_socket_line.h"

namespace verbena::host {
namespace {

constexpr std::string_view kPrefix{"\0verbena/1/lid/", 15};
static_assert(kProtocolVersion == 1, "the prefix names the version");
constexpr std::size_t kGuidDigits = 16;

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
  return std::string(kPrefix) + std::to_string(holder.first) + "/" + std::to_string(holder.last) + "/" +
         guid_digits(holder.guid) + "/" + std::to_string(holder.pid);
}

std::optional<LidHolder> parse_lid_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::array<std::string_view, 4> words;
  for (auto& word : words) {
    const auto end = std::min(name.find('/'), name.size());
    word = name.substr(0, end);
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  const auto first = parse_name_number(words[0]);
  const auto last = parse_name_number(words[1]);
  const auto guid = parse_guid(words[2]);
  const auto pid = parse_name_number(words[3]);
  if (!name.empty() || !first || !last || !guid || !pid || *first > *last || *last > UINT16_MAX) return std::nullopt;
  return LidHolder{static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last), *guid, *pid};
}

std::optional<LidHolder> parse_lid_line(std::string_view line) {
  const auto socket = parse_listening_socket(line);
  return socket ? parse_lid_name(socket->name) : std::nullopt;
}

}  // namespace verbena::host
