// What the two ends of a ping tell each other over TCP before the first datagram: one JSON object a line.
//
//   server -> client   hello: its GIDs, queue pairs, Q_Key, MTU, and the number it gave this client
//   client -> server   hello: the same of the client
//   server -> client   hello once more: "I know you now, begin" - or one with `error`
//
// The end of the connection ends the session. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "verbena/gid.h"
#include "verbena/result.h"

namespace verbena::cli {

inline constexpr std::size_t kMaxHelloBytes = 65536;

struct SessionHello {
  std::vector<Gid> gids{};            // where the speaker can be reached, the best first
  std::vector<std::uint32_t> qpns{};  // at least one
  std::uint32_t qkey = 0;             // of all of them
  std::uint32_t mtu = 0;              // bytes of payload in one datagram
  std::uint16_t lid = 0;              // InfiniBand; 0 on RoCE
  std::uint32_t client = 0;           // the server's number for the client
  std::string device{};               // for display
  // More about the speaker's port, for checks before the first datagram. An older Verbena does not tell: empty and 0.
  std::vector<std::string> types{};  // of the GIDs, one each: "RoCE v2", "InfiniBand"
  std::string link_layer{};          // "ethernet" or "infiniband"
  std::string netdev{};
  std::uint32_t netdev_mtu = 0;
  std::uint64_t rate_mbps = 0;
  std::string error{};  // not empty: the speaker gives up, and why

  friend bool operator==(const SessionHello&, const SessionHello&) = default;
};

// One line, without the newline.
std::string encode(const SessionHello& hello);

// Errors: kInvalidArgument for what is no hello of this version; kUnavailable with the words of a hello that has an
//         error.
Result<SessionHello> decode_session_hello(std::string_view line);

}  // namespace verbena::cli
