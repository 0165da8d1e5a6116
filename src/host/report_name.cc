#include "host/report_name.h"

#include "host/unix_socket_line.h"

namespace verbena::host {
namespace {

constexpr std::string_view kPrefix{"\0verbena/1/directories/", 23};

}  // namespace

std::string to_socket_name(const ReportName& name) {
  return std::string(kPrefix) + std::to_string(name.pid) + "/" + std::to_string(name.number);
}

std::optional<ReportName> parse_report_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto numbers = name.substr(kPrefix.size());
  const auto slash = numbers.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto pid = parse_name_number(numbers.substr(0, slash));
  const auto number = parse_name_number(numbers.substr(slash + 1));
  if (!pid || !number || *pid == 0) return std::nullopt;
  return ReportName{*pid, *number};
}

}  // namespace verbena::host
