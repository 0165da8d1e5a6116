#include "cli/link_local_scope.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <net/if.h>

#include "cli/interface.h"
#include "verbena/gid.h"

namespace verbena::cli {
namespace {

std::string in_words(const std::vector<std::string>& interfaces) {
  constexpr std::size_t kShown = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(interfaces.size(), kShown); ++i) {
    text += (text.empty() ? "" : ", ") + interfaces[i];
  }
  if (interfaces.size() > kShown) text += ", ...";
  return text.empty() ? "none" : text;
}

}  // namespace

Status check_scope(std::string_view host, const std::vector<std::string>& interfaces) {
  const std::size_t percent = host.find('%');
  const std::string address(host.substr(0, percent));
  const auto gid = parse_gid(address);
  if (!gid || !gid->is_link_local()) return {};
  if (percent == std::string_view::npos) {
    return failure(
        ErrorCode::kInvalidArgument,
        fmt::format("{} is link-local and means another host on each link: name the interface behind it, as "
                    "in {}%{} (interfaces here: {})",
                    address, address, interfaces.empty() ? "eth0" : interfaces.front(), in_words(interfaces)));
  }
  const std::string name(host.substr(percent + 1));
  const bool is_number = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
  if (is_number || name == "lo" || std::find(interfaces.begin(), interfaces.end(), name) != interfaces.end()) return {};
  return failure(ErrorCode::kInvalidArgument,
                 fmt::format("{}: there is no interface \"{}\" in this network namespace (interfaces here: {})", host,
                             name, in_words(interfaces)));
}

std::vector<std::string> link_names() {
  std::vector<std::string> names;
  const std::unique_ptr<struct if_nameindex, decltype(&::if_freenameindex)> list(::if_nameindex(), &::if_freenameindex);
  for (const struct if_nameindex* one = list.get(); one != nullptr && one->if_index != 0; ++one) {
    if (std::string_view(one->if_name) != "lo" && interface_is_up(one->if_name)) names.emplace_back(one->if_name);
  }
  return names;
}

}  // namespace verbena::cli
