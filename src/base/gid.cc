#include "verbena/gid.h"

#include <cstring>

#include <arpa/inet.h>

namespace verbena {

std::optional<Gid> parse_gid(std::string_view text) {
  const std::string copy(text);
  in_addr v4{};
  if (inet_pton(AF_INET, copy.c_str(), &v4) == 1) return Gid::from_ipv4(ntohl(v4.s_addr));
  Gid gid{};
  if (inet_pton(AF_INET6, copy.c_str(), gid.bytes.data()) == 1) return gid;
  return std::nullopt;
}

std::string to_string(const Gid& gid) {
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(AF_INET6, gid.bytes.data(), text, sizeof text);
  return text;
}

}  // namespace verbena
