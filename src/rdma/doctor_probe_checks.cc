// The last check: did data move? A handshake over TCP proves nothing about the data path.
#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "rdma/doctor_finding.h"
#include "rdma/doctor_path_checks.h"

namespace verbena::rdma {
namespace {

std::string series_in_words(const ProbeSeries& series) {
  return fmt::format("{} of {} datagrams of {} bytes came back{}", series.received, series.sent, series.bytes,
                     series.received == 0 ? ""
                                          : fmt::format(", half of them within {:.1f} us",
                                                        static_cast<double>(series.median_ns) / 1000));
}

std::string drops_in_words(const ProbeFacts& probe) {
  std::string text;
  for (const auto& [name, count] : probe.drops)
    text += fmt::format("{}{} {}", text.empty() ? "; dropped here: " : ", ", count, name);
  return text;
}

std::string gids_in_words(const std::vector<Gid>& gids) {
  constexpr std::size_t kShown = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(gids.size(), kShown); ++i) {
    text += (text.empty() ? "" : ", ") + address_text(gids[i]);
  }
  return gids.size() > kShown ? fmt::format("{} and {} more", text, gids.size() - kShown) : text;
}

// Where what the user asked for cannot arrive at the server's queue pair, whatever the network does.
std::optional<Advice> advice_for_wrong_address(const PathFacts& path) {
  if (!path.far) return std::nullopt;
  const auto& gids = path.far->gids;
  if (!path.destination.is_zero() && !gids.empty() &&
      std::find(gids.begin(), gids.end(), path.destination) == gids.end()) {
    return Advice{
        fmt::format("the DGID {} is none of the port where the server answers ({} has {}): the datagrams went "
                    "to another port, where this queue pair is not",
                    address_text(path.destination), path.far->device, gids_in_words(gids)),
        "give one of those, or leave --dgid out; start the server on the device that has it (--device)"};
  }
  constexpr std::uint32_t kControlled = 0x80000000;  // sent as the queue pair's own
  if (path.qkey && (*path.qkey & kControlled) != 0) {
    return Advice{
        fmt::format("the highest bit of the Q_Key {:#010x} is set, so the sending queue pair's own Q_Key goes "
                    "out instead, and that is not the server's, {:#010x}: the peer drops such a datagram "
                    "(qkey_mismatch)",
                    *path.qkey, path.far->qkey),
        "send with the Q_Key that the peer has set, below 0x80000000, or leave --qkey out"};
  }
  if (path.qkey && *path.qkey != path.far->qkey) {
    return Advice{
        fmt::format("the Q_Key {:#010x} is not that of the server's queue pair, {:#010x}: the peer drops such "
                    "a datagram (qkey_mismatch)",
                    *path.qkey, path.far->qkey),
        "send with the Q_Key that the peer has set, or leave --qkey out"};
  }
  return std::nullopt;
}

bool was_dropped(const ProbeFacts& probe, std::string_view name) {
  return std::any_of(probe.drops.begin(), probe.drops.end(), [&](const auto& drop) { return drop.first == name; });
}

// Of the software RNIC: the LID map says where a LID is.
Advice advice_for_silent_lid(const ProbeFacts& probe, const PathFacts& path) {
  const std::string both = fmt::format(
      "name each end's LID at the other: VERBENA_LIDS={}@ADDRESS-OF-THE-PEER here, "
      "VERBENA_LIDS={}@ADDRESS-OF-THIS-HOST "
      "there (--lids, or `lid` lines of VERBENA_SUBNET)",
      path.dlid, path.local->lid);
  if (was_dropped(probe, "unknown_lid") || was_dropped(probe, "peer_gone")) {  // looked for here, and not found
    return {
        fmt::format("LID {} is taken for one of this host, since neither VERBENA_LIDS nor VERBENA_SUBNET says which "
                    "host has it, and no port that answers has it here",
                    path.dlid),
        both};
  }
  return {
      fmt::format("the peer does not take what comes from LID {}, as its VERBENA_LIDS does not name this host for it "
                  "(lid_not_of_source there), it has nowhere to answer to, or UDP port 4797 is filtered on the way",
                  path.local->lid),
      both + "; let UDP 4797 through in both directions; look at verbena drops on the peer while the server runs"};
}

Advice advice_for_silence(const ProbeFacts& probe, const PathFacts& path) {
  if (auto advice = advice_for_wrong_address(path)) return *advice;
  if (path.local && path.local->link_layer == LinkLayer::kInfiniBand) {
    if (path.local->kind == DeviceKind::kVerbena) return advice_for_silent_lid(probe, path);
    return {
        fmt::format("the handshake by TCP passed and no datagram came back: LID {} leads to another port or to none, "
                    "or the two ports have no P_Key in common",
                    path.dlid),
        "compare the LID with `ibv_devinfo` on the peer, and the P_Keys of both ends; ibtracert between the LIDs"};
  }
  if (path.route && !path.route->local && !path.route->gateway.is_zero()) {
    return {
        "the handshake by TCP passed and no datagram came back: UDP port 4791 is filtered on the way, the router drops "
        "them (hop limit, MTU), or one end speaks another RoCE version",
        "let UDP 4791 through in both directions; verbena drops at both ends; capture with --pcap"};
  }
  return {
      "the handshake by TCP passed and no datagram came back: UDP port 4791 is filtered (firewall, security group), or "
      "the peer cannot answer",
      "let UDP 4791 through in both directions; look at verbena drops on the peer while the server runs"};
}

Finding judge(const ProbeFacts& probe, const ProbeSeries& series, const PathFacts& path, bool smaller_passed) {
  const std::string seen = series_in_words(series) + (series.received == series.sent ? "" : drops_in_words(probe));
  if (series.corrupt > 0) {
    return finding(Severity::kFailure, "probe", path.peer,
                   fmt::format("{}; {} with other bytes than were sent", seen, series.corrupt),
                   {"something on the way changes the payload, or a buffer is used while it is being filled",
                    "capture at both ends (--pcap) and compare"});
  }
  if (series.unsent > 0) {
    return finding(series.received == 0 ? Severity::kFailure : Severity::kWarning, "probe", path.peer,
                   fmt::format("{}; {} not sent: no address handle ({})", seen, series.unsent, series.unsent_why),
                   {"the address, the link or the neighbour went away while the probe ran",
                    "see the text, and `ip addr`; run it again when they stay"});
  }
  if (series.sent == 0) {
    return finding(
        Severity::kFailure, "probe", path.peer, seen,
        {"nothing was sent, so nothing shows that data moves: the probe was interrupted, or no send completed",
         "run it again; verbena drops says what went wrong here"});
  }
  if (series.received == series.sent && series.sent < series.planned) {
    return finding(Severity::kNote, "probe", path.peer, seen,
                   {fmt::format("interrupted: {} were to be sent", series.planned), "run it again, to the end"});
  }
  if (series.received == series.sent) return good("probe", path.peer, seen);
  if (series.received == 0) {
    if (!smaller_passed) return finding(Severity::kFailure, "probe", path.peer, seen, advice_for_silence(probe, path));
    return finding(
        Severity::kFailure, "probe", path.peer, seen,
        {"small datagrams pass and those of the full MTU do not: something on the way has a smaller MTU than the "
         "two ends say",
         "give all interfaces and switches on the way one MTU, or set path_mtu lower at both ends"});
  }
  return finding(
      Severity::kWarning, "probe", path.peer, seen,
      {"datagrams are lost on the way or in a full queue", "verbena drops at both ends says where; see loss_control"});
}

// Unlike a host that refuses, where only the server is missing.
bool answered_nothing(const Error& error) noexcept {
  const int number = error.system_errno;
  return error.code == ErrorCode::kTimedOut || number == ETIMEDOUT || number == EHOSTUNREACH;
}

// Why there is no session.
Finding check_handshake(const Error& error, const PathFacts& path) {
  if (error.code == ErrorCode::kInvalidArgument) {
    return finding(Severity::kFailure, "handshake", path.peer, error.message,
                   {"the address does not say which host is meant, so nobody was asked and nothing was sent",
                    "write it as the text says, then run this again"});
  }
  if (answered_nothing(error)) {
    return finding(
        Severity::kWarning, "handshake", path.peer, error.message,
        {"the peer answers nothing, not even that nobody listens there: it is down, the neighbour entry for it has a "
         "wrong MAC address, something on the way drops what goes to that TCP port, or the program there is stopped",
         "ping PEER; compare `ip neigh show` with the peer's `ip link show`; let the TCP port through; then run this "
         "again with `verbena doctor --serve` on the peer"});
  }
  return finding(Severity::kNote, "handshake", path.peer, error.message,
                 {"only checks of this host were made: nobody answers there, so nothing shows that data moves",
                  "start `verbena doctor --serve` on the peer (or `verbena ping --listen`), then run this again"});
}

}  // namespace

std::vector<Finding> check_probe(const ProbeFacts& probe, const PathFacts& path) {
  if (probe.connect_error) return {check_handshake(*probe.connect_error, path)};
  std::vector<Finding> findings;
  if (probe.session_error) {
    findings.push_back(
        finding(Severity::kFailure, "handshake", path.peer, probe.session_error->message,
                {"the session with the server did not come about", "see the text; look at what the server prints"}));
    return findings;
  }
  findings.push_back(good("handshake", path.peer, "the server answers and tells its port"));
  if (probe.address_error) {
    findings.push_back(finding(Severity::kFailure, "address_handle", path.peer, probe.address_error->message,
                               {"no address handle to the peer could be made", "see the text and the checks above"}));
    return findings;
  }
  constexpr std::int64_t kSlowNs = 100'000'000;
  const std::string seen = fmt::format("made in {:.2f} ms", static_cast<double>(probe.address_ns) / 1e6);
  findings.push_back(probe.address_ns < kSlowNs
                         ? good("address_handle", path.peer, seen)
                         : finding(Severity::kNote, "address_handle", path.peer, seen,
                                   {"the neighbour had to be resolved first, and took its time",
                                    "make address handles before the traffic starts, never on the data path"}));
  bool smaller_passed = false;
  for (const ProbeSeries& series : probe.series) {
    findings.push_back(judge(probe, series, path, smaller_passed));
    smaller_passed = smaller_passed || series.received > 0;
  }
  return findings;
}

}  // namespace verbena::rdma
