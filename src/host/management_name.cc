#include "host/management_name.h"

#include <array>

#include "host/slot_name.h"

namespace verbena::host {
namespace {

constexpr std::string_view kProcessPrefix{"\0verbena/1/cm/process/", 22};
constexpr std::string_view kServicePrefix{"\0verbena/1/cm/service/", 22};
static_assert(kProtocolVersion == 1, "the prefixes name the version");

std::array<char, 16> hex(std::uint64_t value) noexcept {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<char, 16> text{};
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = kDigits[value >> (60 - 4 * i) & 0xf];
  return text;
}

}  // namespace

std::string connection_process_name(unsigned process) {
  return std::string(kProcessPrefix) + std::to_string(process);
}

std::string service_name(std::uint64_t service, const std::optional<Gid>& at) {
  const auto digits = hex(service);
  std::string name(kServicePrefix);
  name.append(digits.data(), digits.size()).append("/");
  return name.append(at ? to_string(*at) : "any");
}

bool is_service_line(std::string_view line, std::uint64_t service) noexcept {
  const auto digits = hex(service);
  const std::size_t at = line.find('@');  // how the kernel shows the leading NUL
  if (at == std::string_view::npos) return false;
  const std::string_view name = line.substr(at + 1);
  const std::string_view prefix = kServicePrefix.substr(1);
  return name.starts_with(prefix) && name.substr(prefix.size()).starts_with(std::string_view(digits.data(), 16)) &&
         name.substr(prefix.size() + digits.size()).starts_with('/');
}

}  // namespace verbena::host
