#include "cli/doctor_probe.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include <unistd.h>

#include "cli/clock.h"
#include "cli/counter_source.h"
#include "cli/drop_report.h"
#include "cli/ping_client.h"
#include "cli/ping_session.h"
#include "cli/progress_bar.h"
#include "cli/ud_endpoint.h"
#include "verbena/preflight.h"

namespace verbena::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kDatagrams = 20;  // of each size
constexpr std::size_t kSmall = 64;
constexpr Duration kTimeout = 500ms;
constexpr auto kPatience = 5s;

Destination destination_of(const rdma::PathFacts& path) {
  return {.gid = path.destination,
          .source = path.source ? path.source->entry.gid : Gid{},
          .lid = path.dlid,
          .traffic_class = path.traffic_class,
          .hop_limit = path.hop_limit,
          .static_rate = path.static_rate};
}

// An open endpoint on a session, and what it found.
class Probe {
 public:
  Probe(DoctorSession& session, const rdma::PathFacts& path) : session_(session), path_(path) {}

  rdma::ProbeFacts run();

 private:
  Status prepare();
  Status send_series(std::size_t bytes);
  void add_drops();

  DoctorSession& session_;
  const rdma::PathFacts& path_;
  rdma::ProbeFacts facts_;
  std::unique_ptr<UdEndpoint> endpoint_;
  AhHandle handle_;
};

// An address error is an outcome, told by `facts_.address_error`; the returned error is the session's.
Status Probe::prepare() {
  auto endpoint = UdEndpoint::open({.port = {path_.device, path_.port}});
  if (!endpoint) return tl::make_unexpected(endpoint.error());
  endpoint_ = std::move(*endpoint);
  const Instant start = now();
  auto handle = endpoint_->directory().acquire(destination_of(path_), Deadline::in(kPatience));
  facts_.address_ns = (now() - start).count();
  if (!handle) {
    facts_.address_error = handle.error();
    return {};
  }
  handle_ = std::move(*handle);
  return introduce(session_.channel, *endpoint_, session_.hello.client, Deadline::in(kPatience));
}

Status Probe::send_series(std::size_t bytes) {
  const PingPlan plan{
      .count = kDatagrams, .size = bytes, .window = 2, .timeout = kTimeout, .client = session_.hello.client};
  const UdPeer peer{nullptr, session_.hello.qpns.front(), path_.qkey.value_or(session_.hello.qkey)};
  const PostPing post = [&](std::uint64_t, std::string& unsent) {
    return send_through_directory(*endpoint_, handle_, peer, bytes, unsent);
  };
  ProgressBar silent("", plan.count, now(), false);
  const auto outcome = run_ping(*endpoint_, session_.channel, plan, post, silent);
  if (!outcome) return tl::make_unexpected(outcome.error());
  const PingCounts& counts = outcome->round_trips.counts();
  facts_.series.push_back({.bytes = bytes,
                           .planned = kDatagrams,
                           .sent = counts.sent,
                           .received = counts.received + counts.late,
                           .corrupt = counts.corrupt,
                           .duplicate = counts.duplicate,
                           .median_ns = outcome->round_trips.latency().percentile(50).count(),
                           .unsent = counts.unsent,
                           .unsent_why = outcome->unsent_why});
  if (outcome->cut_short) return failure(ErrorCode::kUnavailable, outcome->ended_by);
  return {};
}

void Probe::add_drops() {
  const auto survey = survey_counters(200ms);
  if (!survey) return;
  for (const auto& [name, count] : counted_drops(only_process(*survey, static_cast<std::uint32_t>(::getpid())))) {
    facts_.drops.emplace_back(name, count);
  }
}

rdma::ProbeFacts Probe::run() {
  if (Status status = prepare(); !status) {
    facts_.session_error = status.error();
    return std::move(facts_);
  }
  if (facts_.address_error) return std::move(facts_);
  const std::size_t full =
      std::max<std::size_t>(effective_mtu(endpoint_->port().active_mtu, session_.hello.mtu, 0, false), kSmall);
  for (const std::size_t bytes : std::array{kSmall, full}) {
    if (Status status = send_series(bytes); !status) {
      facts_.session_error = status.error();
      break;
    }
    if (full == kSmall) break;
  }
  add_drops();
  return std::move(facts_);
}

std::optional<GidType> type_named(const std::string& name) {
  for (const GidType type : {GidType::kInfiniBand, GidType::kRoceV1, GidType::kRoceV2}) {
    if (name == to_string(type)) return type;
  }
  return std::nullopt;
}

}  // namespace

Result<DoctorSession> meet_server(const std::string& host, std::uint16_t port, Deadline deadline) {
  auto channel = ControlChannel::connect(host, port, deadline);
  if (!channel) return tl::make_unexpected(channel.error());
  DoctorSession session{.channel = std::move(*channel)};
  auto hello = receive_hello(session.channel, deadline);
  if (!hello) return tl::make_unexpected(hello.error());
  session.hello = std::move(*hello);
  return session;
}

rdma::FarPort far_port_of(const SessionHello& hello) {
  rdma::FarPort far{.device = hello.device,
                    .netdev = hello.netdev,
                    .gids = hello.gids,
                    .mtu = hello.mtu,
                    .interface_mtu = hello.netdev_mtu,
                    .rate_mbps = hello.rate_mbps,
                    .lid = hello.lid,
                    .qkey = hello.qkey};
  if (hello.link_layer == "ethernet") far.link_layer = LinkLayer::kEthernet;
  if (hello.link_layer == "infiniband") far.link_layer = LinkLayer::kInfiniBand;
  for (const std::string& type : hello.types) far.types.push_back(type_named(type));
  return far;
}

rdma::ProbeFacts probe(DoctorSession& session, const rdma::PathFacts& path) {
  return Probe(session, path).run();
}

}  // namespace verbena::cli
