// What an address costs on a real verbs device, side by side in one run: ibv_create_ah with ibv_destroy_ah beside a hit
// in the directory, and the rate of datagrams through a fixed handle, through the directory over many destinations, and
// with a handle made for each send.
//
//     ah_on_device --device rxe0 --peer-device rxe1 --to 10.9.0.2     prints JSON
//
// The destinations are one address with as many flow labels, each an address handle of its own. Rounds are interleaved,
// so that a busy moment hits all ways; each figure is the median of its rounds. A datagram counts when it was received.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/ud_endpoint.h"

namespace verbena::bench {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using cli::UdEndpoint;

constexpr std::size_t kWindow = 64;
constexpr std::size_t kBytes = 64;
constexpr auto kLostAfter = 500ms;

struct Plan {
  std::string device;
  std::string peer_device;
  std::string to;
  std::size_t destinations = 1000;
  std::uint64_t datagrams = 4000;  // a round and way
  std::uint64_t look_ups = 200'000;
  std::uint64_t creations = 2000;
  std::size_t rounds = 5;
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Bench {
 public:
  explicit Bench(Plan plan) : plan_(std::move(plan)) {}

  Result<nlohmann::json> run();

 private:
  // Posts datagram number `sequence`.
  using Post = std::function<Status(std::uint64_t sequence)>;

  Status prepare();
  Result<double> rate(const Post& post);
  Result<std::uint64_t> receive_all();
  Result<double> creation_ns();
  double look_up_ns();
  Status post(ibv_ah* address) { return near_->send(0, peer_to(address), kBytes); }
  Status post_created();
  UdPeer peer_to(ibv_ah* address) const { return {address, far_->qpns()[0], far_->qkey()}; }

  Plan plan_;
  std::unique_ptr<UdEndpoint> far_;
  std::unique_ptr<UdEndpoint> near_;
  std::vector<Destination> destinations_;
  std::vector<AhHandle> handles_;
  ibv_ah_attr attributes_{};
  std::uint64_t lost_ = 0;
};

Status Bench::prepare() {
  const auto gid = parse_gid(plan_.to);
  if (!gid) return failure(ErrorCode::kInvalidArgument, "--to " + plan_.to + " is no address");
  for (auto [device, end] : {std::pair(plan_.device, &near_), std::pair(plan_.peer_device, &far_)}) {
    auto opened = UdEndpoint::open({.device = device, .payload_bytes = kBytes});
    if (!opened) return tl::make_unexpected(opened.error());
    *end = std::move(*opened);
  }
  for (std::uint32_t label = 1; label <= plan_.destinations; ++label) {
    Destination destination;
    destination.gid = *gid;
    destination.flow_label = label;
    destinations_.push_back(destination);
  }
  near_->directory().prewarm(destinations_);
  for (const Destination& destination : destinations_) {
    auto handle = near_->directory().acquire(destination, Deadline::in(30s));
    if (!handle) return tl::make_unexpected(handle.error());
    handles_.push_back(std::move(*handle));
  }
  const auto effective = near_->directory().effective(handles_.front());
  if (!effective) return tl::make_unexpected(effective.error());
  attributes_ = effective->attributes;
  return {};
}

// How many arrived by now; each buffer is posted again.
Result<std::uint64_t> Bench::receive_all() {
  const auto arrivals = far_->poll_receives();
  if (!arrivals) return tl::make_unexpected(arrivals.error());
  for (const cli::Arrival& arrival : *arrivals) {
    if (Status status = far_->repost(arrival); !status) return tl::make_unexpected(status.error());
  }
  return arrivals->size();
}

// Datagrams received in a second, with up to kWindow under way.
Result<double> Bench::rate(const Post& post) {
  std::uint64_t sent = 0;
  std::uint64_t arrived = 0;
  std::uint64_t lost = 0;
  const auto begin = Clock::now();
  auto last = begin;
  while (arrived + lost < plan_.datagrams) {
    while (sent < plan_.datagrams && sent - arrived - lost < kWindow && near_->can_send(0)) {
      if (Status status = post(sent); !status) return tl::make_unexpected(status.error());
      ++sent;
    }
    if (Status status = near_->poll_sends(); !status) return tl::make_unexpected(status.error());
    const Result<std::uint64_t> now = receive_all();
    if (!now) return tl::make_unexpected(now.error());
    arrived += *now;
    if (*now != 0) last = Clock::now();
    if (Clock::now() - last < kLostAfter) continue;
    lost = sent - arrived;
    last = Clock::now();
  }
  const double took = std::chrono::duration<double>(last - begin).count();
  lost_ += lost;
  if (arrived == 0) return failure(ErrorCode::kTimedOut, "no datagram arrived");
  return static_cast<double>(arrived) / took;
}

Status Bench::post_created() {
  ibv_ah* address = ibv_create_ah(near_->domain(), &attributes_);
  if (address == nullptr) {
    return failure(ErrorCode::kUnreachable, std::string("ibv_create_ah: ") + std::strerror(errno), errno);
  }
  return near_->send_and_destroy(0, peer_to(address), kBytes);
}

Result<double> Bench::creation_ns() {
  const auto begin = Clock::now();
  for (std::uint64_t i = 0; i < plan_.creations; ++i) {
    ibv_ah* address = ibv_create_ah(near_->domain(), &attributes_);
    if (address == nullptr || ibv_destroy_ah(address) != 0) {
      return failure(ErrorCode::kUnavailable, std::string("ibv_create_ah, ibv_destroy_ah: ") + std::strerror(errno));
    }
  }
  return seconds_since(begin) * 1e9 / static_cast<double>(plan_.creations);
}

// Over all destinations in rotation.
double Bench::look_up_ns() {
  AhSender& sender = near_->sender(0);
  const auto begin = Clock::now();
  std::uint64_t unsent = 0;
  for (std::uint64_t i = 0; i < plan_.look_ups; ++i) {
    if (sender.next(destinations_[i % destinations_.size()]) != nullptr) ++unsent;
    if (unsent == kWindow) sender.retract(std::exchange(unsent, 0));
  }
  sender.retract(unsent);
  return seconds_since(begin) * 1e9 / static_cast<double>(plan_.look_ups);
}

Result<nlohmann::json> Bench::run() {
  if (Status status = prepare(); !status) return tl::make_unexpected(status.error());
  AhSender& sender = near_->sender(0);
  const std::vector<std::pair<const char*, Post>> ways = {
      {"fixed_handle", [&](std::uint64_t) { return post(sender.next(handles_.front())); }},
      {"directory", [&](std::uint64_t i) { return post(sender.next(destinations_[i % destinations_.size()])); }},
      {"create_per_send", [&](std::uint64_t) { return post_created(); }}};
  std::vector<std::vector<double>> rates(ways.size());
  std::vector<double> creations;
  std::vector<double> look_ups;
  for (std::size_t round = 0; round < plan_.rounds; ++round) {
    for (std::size_t way = 0; way < ways.size(); ++way) {
      const Result<double> measured = rate(ways[way].second);
      if (!measured) return tl::make_unexpected(measured.error());
      rates[way].push_back(*measured);
    }
    const Result<double> creation = creation_ns();
    if (!creation) return tl::make_unexpected(creation.error());
    creations.push_back(*creation);
    look_ups.push_back(look_up_ns());
  }
  const double create = median(creations);
  const double hit = median(look_ups);
  nlohmann::json per_second;
  for (std::size_t way = 0; way < ways.size(); ++way) per_second[ways[way].first] = median(rates[way]);
  const double directory = per_second["directory"];
  return nlohmann::json{
      {"device", near_->device()},
      {"peer_device", far_->device()},
      {"destinations", destinations_.size()},
      {"rounds", plan_.rounds},
      {"create_destroy_ns", create},
      {"directory_hit_ns", hit},
      {"datagrams_per_second", per_second},
      {"lost", lost_},
      {"ratios",
       {{"create_over_hit", create / hit},
        {"directory_over_fixed_handle", directory / per_second["fixed_handle"].get<double>()},
        {"directory_over_create_per_send", directory / per_second["create_per_send"].get<double>()}}}};
}

}  // namespace
}  // namespace verbena::bench

int main(int argc, char** argv) {
  verbena::bench::Plan plan;
  bool smoke = false;
  CLI::App app("What an address costs on a verbs device, as JSON");
  app.add_option("--device", plan.device, "The device that sends")->required();
  app.add_option("--peer-device", plan.peer_device, "The device that receives; by default the same");
  app.add_option("--to", plan.to, "An address of the receiving device")->required();
  app.add_option("--destinations", plan.destinations, "How many")->check(CLI::Range(1, 16384))->capture_default_str();
  app.add_option("--datagrams", plan.datagrams, "In each round")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--rounds", plan.rounds, "Of each way")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_flag("--smoke", smoke, "Briefly, to see that it works");
  CLI11_PARSE(app, argc, argv);
  if (plan.peer_device.empty()) plan.peer_device = plan.device;
  if (smoke) {
    plan.rounds = 1;
    plan.datagrams = plan.destinations = plan.creations = plan.look_ups = 100;
  }
  const auto report = verbena::bench::Bench(plan).run();
  if (report) {
    std::puts(report->dump(2).c_str());
    return 0;
  }
  std::fprintf(stderr, "ah_on_device: %s\n", report.error().message.c_str());
  return 1;
}
