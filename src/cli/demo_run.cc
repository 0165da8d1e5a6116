#include "cli/demo_run.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/clock.h"
#include "cli/counter_source.h"
#include "cli/drop_report.h"
#include "cli/interface.h"
#include "cli/path_ends.h"
#include "cli/ping_client.h"
#include "cli/ping_report.h"
#include "cli/ping_session.h"
#include "cli/port_to_server.h"
#include "cli/progress_bar.h"
#include "cli/ud_endpoint.h"

namespace verbena::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kWindow = 64;
constexpr std::uint64_t kWarmUp = 1000;
constexpr std::uint64_t kLookUps = 1'000'000;
constexpr std::uint64_t kCreations = 5000;
constexpr Duration kPhaseLimit = 1500ms;  // four phases: the demo ends within ten seconds
constexpr Duration kPingTimeout = 200ms;
constexpr auto kPatience = 5s;

tl::unexpected<Error> refused_address(int number) {
  const char* name = ::strerrorname_np(number);
  return failure(ErrorCode::kUnavailable,
                 fmt::format("an address handle made for one send was refused: ibv_create_ah: {} ({})",
                             std::strerror(number), name == nullptr ? "?" : name),
                 number);
}

// One destination of the demo: who answers there, its handle of the directory, and the attributes for making one by
// hand.
struct Target {
  UdPeer peer;
  AhHandle handle;
  ibv_ah_attr attributes{};
};

class Demo {
 public:
  Demo(ChildProcess& responder, const DemoPlan& plan) : responder_(responder), plan_(plan) {}

  Result<DemoReport> run();

 private:
  Status meet();
  Status prepare_targets(const SessionHello& server);
  Status measure();
  Status measure_way(DemoWay& way, const PostPing& post, std::string_view label);
  Result<PingOutcome> phase(const PostPing& post, std::size_t window, std::uint64_t count, std::string_view label);
  Result<Duration> creation_cost();
  Duration look_up_cost();
  Status send_with_new_handle(std::uint64_t sequence);
  Status send_with_directory(std::uint64_t sequence, std::string& unsent);
  void describe_path();
  std::string dropped_by_either() const;

  Target& target(std::uint64_t sequence) { return targets_[static_cast<std::size_t>(sequence % targets_.size())]; }

  ChildProcess& responder_;
  const DemoPlan& plan_;
  std::uint32_t client_ = 0;
  std::unique_ptr<UdEndpoint> endpoint_;
  std::vector<Target> targets_;
  std::uint64_t creations_ = 0;
  DemoReport report_;
};

Status Demo::meet() {
  const Deadline deadline = Deadline::in(kPatience);
  const auto server = receive_hello(responder_.channel(), deadline);
  if (!server) return tl::make_unexpected(server.error());
  client_ = server->client;
  const auto port = choose_port_to(*server, plan_.port, 0);
  if (!port) return tl::make_unexpected(port.error());
  auto endpoint = UdEndpoint::open({.port = *port, .payload_bytes = plan_.size});
  if (!endpoint) return tl::make_unexpected(endpoint.error());
  endpoint_ = std::move(*endpoint);
  if (plan_.size > endpoint_->port().active_mtu) {
    return failure(ErrorCode::kInvalidArgument, fmt::format("{} bytes do not fit into a datagram of {}: it takes {}",
                                                            plan_.size, port->device, endpoint_->port().active_mtu));
  }
  if (Status status = prepare_targets(*server); !status) return status;
  return introduce(responder_.channel(), *endpoint_, client_, deadline);
}

// All addresses are asked for before the first is waited for.
Status Demo::prepare_targets(const SessionHello& server) {
  const auto ways = destinations_of(server, endpoint_->port().link_layer, 1);
  const auto first = acquire_first(endpoint_->directory(), ways, Deadline::in(kPatience));
  if (!first) return tl::make_unexpected(first.error());
  std::vector<Destination> destinations(server.qpns.size(), first->destination());
  for (std::size_t i = 0; i < destinations.size(); ++i) {
    destinations[i].flow_label = static_cast<std::uint32_t>(i + 1);
  }
  endpoint_->directory().prewarm(destinations);
  for (std::size_t i = 0; i < destinations.size(); ++i) {
    auto handle = endpoint_->directory().acquire(destinations[i], Deadline::in(kPatience));
    if (!handle) return tl::make_unexpected(handle.error());
    const auto effective = endpoint_->directory().effective(*handle);
    if (!effective) return tl::make_unexpected(effective.error());
    targets_.push_back({{nullptr, server.qpns[i], server.qkey}, std::move(*handle), effective->attributes});
  }
  return {};
}

Status Demo::send_with_new_handle(std::uint64_t sequence) {
  Target& to = target(sequence);
  ++creations_;
  ibv_ah* address = ibv_create_ah(endpoint_->domain(), &to.attributes);
  if (address == nullptr) {
    return refused_address(errno);
  }
  return endpoint_->send_and_destroy(0, {address, to.peer.qpn, to.peer.qkey}, plan_.size);
}

Status Demo::send_with_directory(std::uint64_t sequence, std::string& unsent) {
  Target& to = target(sequence);
  return send_through_directory(*endpoint_, to.handle, to.peer, plan_.size, unsent);
}

Result<PingOutcome> Demo::phase(const PostPing& post, std::size_t window, std::uint64_t count, std::string_view label) {
  const PingPlan plan{.count = count,
                      .size = plan_.size,
                      .window = window,
                      .timeout = kPingTimeout,
                      .time_limit = kPhaseLimit,
                      .client = client_};
  ProgressBar progress(std::string(label), count, now(), plan_.progress);
  auto outcome = run_ping(*endpoint_, responder_.channel(), plan, post, progress);
  if (outcome && outcome->ended_by == "stopped") return failure(ErrorCode::kUnavailable, "stopped");
  if (outcome && outcome->round_trips.counts().received == 0) {
    const std::uint64_t unsent = outcome->round_trips.counts().unsent;
    const std::string why = unsent == 0 ? "" : "; " + render_unsent(unsent, outcome->unsent_why);
    return failure(ErrorCode::kTimedOut, "no datagram came back" + why + dropped_by_either());
  }
  return outcome;
}

Status Demo::measure_way(DemoWay& way, const PostPing& post, std::string_view label) {
  if (const auto warm = phase(post, kWindow, kWarmUp, label); !warm) return tl::make_unexpected(warm.error());
  const std::uint64_t creations_before = creations_;
  const auto alone = phase(post, 1, plan_.count, label);
  if (!alone) return tl::make_unexpected(alone.error());
  const auto together = phase(post, kWindow, plan_.count, label);
  if (!together) return tl::make_unexpected(together.error());
  for (const PingOutcome* outcome : {&*alone, &*together}) {
    way.sent += outcome->round_trips.counts().sent;
    way.lost += outcome->round_trips.lost();
  }
  way.create_calls = creations_ - creations_before;
  way.latency = alone->round_trips.latency();
  way.rate_alone = rate_of(alone->round_trips.counts().received, alone->elapsed);
  way.rate_window = rate_of(together->round_trips.counts().received, together->elapsed);
  return {};
}

Result<Duration> Demo::creation_cost() {
  const std::uint64_t rounds = std::min(plan_.count, kCreations);
  const Instant start = now();
  for (std::uint64_t i = 0; i < rounds; ++i) {
    ibv_ah* address = ibv_create_ah(endpoint_->domain(), &target(i).attributes);
    if (address == nullptr || ibv_destroy_ah(address) != 0) {
      return refused_address(errno);
    }
  }
  return (now() - start) / static_cast<std::int64_t>(rounds);
}

Duration Demo::look_up_cost() {
  AhSender& sender = endpoint_->sender(0);
  std::size_t next = 0;
  const Instant start = now();
  for (std::uint64_t i = 0; i < kLookUps; ++i) {
    if (sender.next(targets_[next].handle) != nullptr) sender.retract(1);
    if (++next == targets_.size()) next = 0;
  }
  return (now() - start) / static_cast<std::int64_t>(kLookUps);
}

Status Demo::measure() {
  const PostPing by_hand = [this](std::uint64_t sequence, std::string&) { return send_with_new_handle(sequence); };
  const PostPing managed = [this](std::uint64_t sequence, std::string& unsent) {
    return send_with_directory(sequence, unsent);
  };
  if (Status status = measure_way(report_.create_per_send, by_hand, "a handle a send"); !status) return status;
  if (Status status = measure_way(report_.directory, managed, "the directory"); !status) return status;
  report_.stats = endpoint_->directory().stats();
  report_.hits = report_.stats.hits;
  report_.misses = report_.stats.misses;
  report_.directory.create_calls = report_.stats.created;
  const auto cost = creation_cost();
  if (!cost) return tl::make_unexpected(cost.error());
  report_.create_per_send.address_cost = *cost;
  report_.directory.address_cost = look_up_cost();
  return {};
}

// What the two processes counted: ": dropped 1,064 no_route". Empty where that is nothing.
std::string Demo::dropped_by_either() const {
  const auto survey = survey_counters(500ms);
  std::string text;
  if (!survey) return text;
  for (const pid_t pid : {::getpid(), responder_.pid()}) {
    const auto drops = counted_drops(only_process(*survey, static_cast<std::uint32_t>(pid)));
    if (!drops.empty()) text += fmt::format("; process {} dropped {}", pid, render_drop_counts(drops));
  }
  return text;
}

void Demo::describe_path() {
  report_.pid = ::getpid();
  report_.responder_pid = responder_.pid();
  report_.device = endpoint_->device();
  report_.size = plan_.size;
  report_.destinations = targets_.size();
  report_.window = kWindow;
  const auto effective = endpoint_->directory().effective(targets_.front().handle);
  if (!effective) return;
  report_.netdev = interface_name(effective->source.netdev);
  PathEnds ends = path_ends(*effective, endpoint_->port());
  report_.source = std::move(ends.source);
  report_.destination = std::move(ends.destination);
  report_.explanation = effective->explanation;
}

Result<DemoReport> Demo::run() {
  if (Status status = meet(); !status) return tl::make_unexpected(status.error());
  describe_path();
  if (Status status = measure(); !status) return tl::make_unexpected(status.error());
  return std::move(report_);
}

}  // namespace

std::vector<std::string> responder_arguments(const DemoPlan& plan) {
  std::vector<std::string> arguments{"demo-responder", "--destinations", std::to_string(plan.destinations)};
  if (!plan.port.device.empty()) arguments.insert(arguments.end(), {"--device", to_text(plan.port)});
  return arguments;
}

Result<DemoReport> run_demo(ChildProcess& responder, const DemoPlan& plan) {
  return Demo(responder, plan).run();
}

}  // namespace verbena::cli
