#include "device_addresses.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace verbena::bench {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using cli::UdEndpoint;

constexpr std::size_t kWindow = 64;
constexpr std::size_t kBytes = 64;
constexpr auto kLostAfter = 500ms;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The compiler must believe that somebody looks at `value`.
template <class T>
void keep(T* value) noexcept {
  asm volatile("" : : "r"(value) : "memory");
}

// Finds one address after the other, over all places in rotation.
template <class Find>
void rotate(std::uint64_t look_ups, std::size_t places, Find find) {
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < look_ups; ++i) {
    keep(find(at));
    if (++at == places) at = 0;
  }
}

// The same by a sender, told of completions as when it sends.
template <class Find>
void rotate(AhSender& sender, std::uint64_t look_ups, std::size_t places, Find find) {
  std::uint64_t uncompleted = 0;
  rotate(look_ups, places, [&](std::size_t at) {
    ibv_ah* address = find(at);
    if (address != nullptr && ++uncompleted == kWindow) sender.completed(std::exchange(uncompleted, 0));
    return address;
  });
  sender.completed(uncompleted);
}

std::vector<double> ratios(const std::vector<double>& of, const std::vector<double>& to) {
  std::vector<double> all(of.size());
  std::transform(of.begin(), of.end(), to.begin(), all.begin(), [](double a, double b) { return a / b; });
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

Status DeviceAddresses::open_ends() {
  for (auto [device, end] : {std::pair(plan_.device, &near_), std::pair(plan_.peer_device, &far_)}) {
    auto opened = UdEndpoint::open({.port = {device, 0}, .payload_bytes = kBytes});
    if (!opened) return tl::make_unexpected(opened.error());
    *end = std::move(*opened);
  }
  for (int thread = 0; thread < 2; ++thread) {
    auto sender = near_->directory().make_sender();
    if (!sender) return tl::make_unexpected(sender.error());
    senders_.push_back(std::move(*sender));
  }
  return {};
}

Status DeviceAddresses::make_addresses() {
  const auto gid = parse_gid(plan_.to);
  if (!gid) return failure(ErrorCode::kInvalidArgument, "--to " + plan_.to + " is no address");
  for (std::uint32_t label = 1; label <= plan_.destinations; ++label) {
    Destination destination;
    destination.gid = *gid;
    destination.flow_label = label;
    destinations_.push_back(destination);
  }
  AhDirectory& directory = near_->directory();
  directory.prewarm(destinations_);
  for (const Destination& destination : destinations_) {
    auto handle = directory.acquire(destination, Deadline::in(30s));
    if (!handle) return tl::make_unexpected(handle.error());
    auto lease = handle->lease();
    if (!lease) return tl::make_unexpected(lease.error());
    const auto effective = directory.effective(*handle);
    if (!effective) return tl::make_unexpected(effective.error());
    if (keys_.empty()) attributes_ = effective->attributes;
    keys_.push_back(AttributeKey::of(effective->attributes));
    handles_.push_back(std::move(*handle));
    leases_.push_back(std::move(*lease));
  }
  return {};
}

void DeviceAddresses::fill_rivals() {
  spin_locked_ = std::make_unique<SpinLockedTable>(keys_.size());
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    spin_locked_->insert(keys_[i], leases_[i].get());
    shared_mutex_.insert(keys_[i], leases_[i].get());
  }
}

std::vector<HitWay> DeviceAddresses::hit_ways() {
  const std::size_t places = destinations_.size();
  return {{"directory, by destination",
           [=, this](std::size_t thread, std::uint64_t look_ups) {
             AhSender& sender = senders_[thread];
             rotate(sender, look_ups, places, [&](std::size_t at) { return sender.next(destinations_[at]); });
           }},
          {"directory, by handle",
           [=, this](std::size_t thread, std::uint64_t look_ups) {
             AhSender& sender = senders_[thread];
             rotate(sender, look_ups, places, [&](std::size_t at) { return sender.next(handles_[at]); });
           }},
          {"directory, by destination, only one",
           [=, this](std::size_t thread, std::uint64_t look_ups) {
             AhSender& sender = senders_[thread];
             rotate(sender, look_ups, 1, [&](std::size_t at) { return sender.next(destinations_[at]); });
           }},
          {"hash table under a spinlock",
           [=, this](std::size_t, std::uint64_t look_ups) {
             rotate(look_ups, places, [&](std::size_t at) { return spin_locked_->find(keys_[at]); });
           }},
          {"unordered_map under shared_mutex", [=, this](std::size_t, std::uint64_t look_ups) {
             rotate(look_ups, places, [&](std::size_t at) { return shared_mutex_.find(keys_[at]); });
           }}};
}

std::vector<DeviceAddresses::RateWay> DeviceAddresses::rate_ways() {
  AhSender& sender = near_->sender(0);
  const std::size_t places = destinations_.size();
  return {
      {"fixed_handle", [this](std::uint64_t) { return post(leases_.front().get()); }},
      {"directory_one_handle", [this, &sender](std::uint64_t) { return post(sender.next(handles_.front())); }},
      {"directory_one_destination",
       [this, &sender](std::uint64_t) { return post(sender.next(destinations_.front())); }},
      {"array_of_handles", [=, this](std::uint64_t i) { return post(leases_[i % places].get()); }},
      {"directory", [=, this, &sender](std::uint64_t i) { return post(sender.next(destinations_[i % places])); }},
      {"directory_by_handle", [=, this, &sender](std::uint64_t i) { return post(sender.next(handles_[i % places])); }},
      {"create_per_send", [this](std::uint64_t) { return post_created(); }}};
}

Status DeviceAddresses::post(ibv_ah* address) {
  return near_->send(0, {address, far_->qpns()[0], far_->qkey()}, kBytes);
}

Status DeviceAddresses::post_created() {
  ibv_ah* address = ibv_create_ah(near_->domain(), &attributes_);
  if (address == nullptr) {
    return failure(ErrorCode::kUnreachable, std::string("ibv_create_ah: ") + std::strerror(errno), errno);
  }
  return near_->send_and_destroy(0, {address, far_->qpns()[0], far_->qkey()}, kBytes);
}

// How many arrived by now; each buffer is posted again.
Result<std::uint64_t> DeviceAddresses::receive_all() {
  const auto arrivals = far_->poll_receives();
  if (!arrivals) return tl::make_unexpected(arrivals.error());
  for (const cli::Arrival& arrival : *arrivals) {
    if (Status status = far_->repost(arrival); !status) return tl::make_unexpected(status.error());
  }
  return arrivals->size();
}

// Datagrams received in a second, with up to kWindow under way.
Result<DeviceAddresses::Rate> DeviceAddresses::rate(const Post& post) {
  std::uint64_t sent = 0;
  std::uint64_t arrived = 0;
  std::uint64_t lost = 0;
  const double processor = processor_seconds();
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
  const auto count = static_cast<double>(arrived);
  return Rate{count / took, count / (processor_seconds() - processor)};
}

Result<double> DeviceAddresses::creation_ns() {
  const auto begin = Clock::now();
  for (std::uint64_t i = 0; i < plan_.creations; ++i) {
    ibv_ah* address = ibv_create_ah(near_->domain(), &attributes_);
    if (address == nullptr || ibv_destroy_ah(address) != 0) {
      return failure(ErrorCode::kUnavailable, std::string("ibv_create_ah, ibv_destroy_ah: ") + std::strerror(errno));
    }
  }
  return seconds_since(begin) * 1e9 / static_cast<double>(plan_.creations);
}

// The order rotates, so that no way always follows the same other one; the first round warms up.
Status DeviceAddresses::measure_rates(std::vector<RateWay>& ways) {
  for (std::size_t round = 0; round <= plan_.rounds; ++round) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      RateWay& way = ways[(i + round) % ways.size()];
      const Result<Rate> measured = rate(way.post);
      if (!measured) return tl::make_unexpected(measured.error());
      if (round == 0) continue;
      way.rounds.push_back(measured->per_second);
      way.processor.push_back(measured->per_processor_second);
    }
  }
  return {};
}

Result<AddressFigures> DeviceAddresses::measure() {
  if (Status status = open_ends(); !status) return tl::make_unexpected(status.error());
  if (Status status = make_addresses(); !status) return tl::make_unexpected(status.error());
  fill_rivals();
  AddressFigures figures{.device = near_->device(), .peer_device = far_->device()};
  std::vector<RateWay> ways = rate_ways();
  if (Status status = measure_rates(ways); !status) return tl::make_unexpected(status.error());
  figures.hits = measure_hits(hit_ways(), plan_.rounds, plan_.look_ups);
  std::vector<double> creations;
  for (std::size_t round = 0; round < plan_.rounds; ++round) {
    const Result<double> creation = creation_ns();
    if (!creation) return tl::make_unexpected(creation.error());
    creations.push_back(*creation);
  }
  figures.create_destroy_ns = median(creations);
  for (const RateWay& way : ways) {
    const std::vector<double> to_fixed = ratios(way.rounds, ways.front().rounds);
    figures.rates.push_back({.name = way.name,
                             .per_second = median(way.rounds),
                             .fixed_handle_times = to_fixed[to_fixed.size() / 2],
                             .fixed_handle_lowest = to_fixed[to_fixed.size() / 4],
                             .fixed_handle_highest = to_fixed[to_fixed.size() * 3 / 4],
                             .create_per_send_times = median(ratios(way.rounds, ways.back().rounds)),
                             .processor_ns = 1e9 / median(way.processor),
                             .fixed_handle_processor = median(ratios(way.processor, ways.front().processor)),
                             .create_per_send_processor = median(ratios(way.processor, ways.back().processor))});
  }
  figures.lost = lost_;
  return figures;
}

}  // namespace verbena::bench
