#include "cli/session_hello.h"

#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/json_text.h"

namespace verbena::cli {
namespace {

constexpr int kVersion = 1;
constexpr std::size_t kMaxListed = 4096;

tl::unexpected<Error> not_a_hello(std::string_view what) {
  return failure(ErrorCode::kInvalidArgument,
                 fmt::format("the other end does not speak as this version of verbena ping does: {}", what));
}

// False where `json[key]` is no number that fits.
template <class Number>
bool read_number(const nlohmann::json& json, const char* key, Number& number) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_unsigned()) return false;
  const auto value = found->get<std::uint64_t>();
  if (value > static_cast<std::uint64_t>(std::numeric_limits<Number>::max())) return false;
  number = static_cast<Number>(value);
  return true;
}

bool read_text(const nlohmann::json& json, const char* key, std::string& text) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) return false;
  text = found->get<std::string>();
  return true;
}

bool read_gids(const nlohmann::json& json, std::vector<Gid>& gids) {
  const auto found = json.find("gids");
  if (found == json.end() || !found->is_array() || found->size() > kMaxListed) return false;
  for (const auto& element : *found) {
    const auto gid = element.is_string() ? parse_gid(element.get<std::string>()) : std::nullopt;
    if (!gid) return false;
    gids.push_back(*gid);
  }
  return true;
}

bool read_qpns(const nlohmann::json& json, std::vector<std::uint32_t>& qpns) {
  const auto found = json.find("qpns");
  if (found == json.end() || !found->is_array() || found->empty() || found->size() > kMaxListed) return false;
  for (const auto& element : *found) {
    if (!element.is_number_unsigned() || element.get<std::uint64_t>() > 0xffffff) return false;
    qpns.push_back(element.get<std::uint32_t>());
  }
  return true;
}

bool read_types(const nlohmann::json& json, std::vector<std::string>& types) {
  const auto found = json.find("types");
  if (found == json.end() || !found->is_array() || found->size() > kMaxListed) return false;
  for (const auto& element : *found) {
    if (!element.is_string()) return false;
    types.push_back(element.get<std::string>());
  }
  return true;
}

// What an older Verbena leaves out. The name of the first that is there and of a wrong kind; nullptr.
const char* read_optional(const nlohmann::json& json, SessionHello& hello) {
  if (json.contains("types") && !read_types(json, hello.types)) return "types";
  if (json.contains("link_layer") && !read_text(json, "link_layer", hello.link_layer)) return "link_layer";
  if (json.contains("netdev") && !read_text(json, "netdev", hello.netdev)) return "netdev";
  if (json.contains("netdev_mtu") && !read_number(json, "netdev_mtu", hello.netdev_mtu)) return "netdev_mtu";
  if (json.contains("rate_mbps") && !read_number(json, "rate_mbps", hello.rate_mbps)) return "rate_mbps";
  return nullptr;
}

}  // namespace

std::string encode(const SessionHello& hello) {
  auto gids = nlohmann::json::array();
  for (const Gid& gid : hello.gids) gids.push_back(to_string(gid));
  return json_line({{"verbena_ping", kVersion},
                    {"gids", std::move(gids)},
                    {"qpns", hello.qpns},
                    {"qkey", hello.qkey},
                    {"mtu", hello.mtu},
                    {"lid", hello.lid},
                    {"client", hello.client},
                    {"device", hello.device},
                    {"types", hello.types},
                    {"link_layer", hello.link_layer},
                    {"netdev", hello.netdev},
                    {"netdev_mtu", hello.netdev_mtu},
                    {"rate_mbps", hello.rate_mbps},
                    {"error", hello.error}});
}

Result<SessionHello> decode_session_hello(std::string_view line) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return not_a_hello("no JSON object");
  int version = 0;
  if (!read_number(json, "verbena_ping", version) || version != kVersion) return not_a_hello("another version");
  SessionHello hello;
  if (read_text(json, "error", hello.error) && !hello.error.empty()) {
    return failure(ErrorCode::kUnavailable, "the other end gave up: " + hello.error);
  }
  if (!read_gids(json, hello.gids)) return not_a_hello("gids");
  if (!read_qpns(json, hello.qpns)) return not_a_hello("qpns");
  if (!read_number(json, "qkey", hello.qkey)) return not_a_hello("qkey");
  if (!read_number(json, "mtu", hello.mtu)) return not_a_hello("mtu");
  if (!read_number(json, "lid", hello.lid)) return not_a_hello("lid");
  if (!read_number(json, "client", hello.client)) return not_a_hello("client");
  if (!read_text(json, "device", hello.device)) return not_a_hello("device");
  if (const char* wrong = read_optional(json, hello); wrong != nullptr) return not_a_hello(wrong);
  return hello;
}

}  // namespace verbena::cli
