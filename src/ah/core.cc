// How a Core begins and ends.
#include "ah/core.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <random>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "rdma/verbs_error.h"

namespace verbena::ah {

namespace {

// Address handles of one directory, whatever the device says: each sender has eight bytes for each.
constexpr std::size_t kMostEntries = std::size_t{1} << 22;
constexpr unsigned kMostCreators = 64;
constexpr std::chrono::nanoseconds kLongestDeviceLag = std::chrono::hours(1);
// What a longer time is taken as: "for ever", and near enough for the arithmetic of every clock.
constexpr std::chrono::nanoseconds kForEver = std::chrono::hours(24 * 365);

struct TimeOption {
  const char* name;
  std::chrono::nanoseconds AhDirectoryOptions::*value;
};

constexpr std::array kTimes{TimeOption{"idle_age", &AhDirectoryOptions::idle_age},
                            TimeOption{"first_back_off", &AhDirectoryOptions::first_back_off},
                            TimeOption{"max_back_off", &AhDirectoryOptions::max_back_off},
                            TimeOption{"close_grace", &AhDirectoryOptions::close_grace},
                            TimeOption{"leak_age", &AhDirectoryOptions::leak_age},
                            TimeOption{"max_age", &AhDirectoryOptions::max_age},
                            TimeOption{"forgotten_age", &AhDirectoryOptions::forgotten_age}};

std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

Status check_times(const AhDirectoryOptions& options) {
  if (options.device_lag.count() < 0 || options.device_lag > kLongestDeviceLag) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("device_lag is {} ns; use 0 to an hour", options.device_lag.count()));
  }
  for (const TimeOption& time : kTimes) {
    if ((options.*time.value).count() >= 0) continue;
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("{} is {} ns; use 0 or more", time.name, (options.*time.value).count()));
  }
  if (options.max_back_off < options.first_back_off) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("max_back_off is {} ns, which is below first_back_off ({} ns); use as much or more",
                               options.max_back_off.count(), options.first_back_off.count()));
  }
  return {};
}

AhDirectoryOptions with_bounded_times(AhDirectoryOptions options) {
  for (const TimeOption& time : kTimes) options.*time.value = std::min(options.*time.value, kForEver);
  return options;
}

Status check_options(const AhDirectoryOptions& options) {
  if (options.creators == 0 || options.creators > kMostCreators) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("creators is {}; use 1 to {}", options.creators, kMostCreators));
  }
  if (options.max_entries == 0 || options.max_entries > kMostEntries) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("max_entries is {}; use 1 to {}", options.max_entries, kMostEntries));
  }
  if (Status status = check_times(options); !status) return status;
  if (options.reply_hop_limit == 0) {
    return failure(ErrorCode::kInvalidArgument, "reply_hop_limit is 0, which does not leave the host; use 64");
  }
  if (!options.routes) return failure(ErrorCode::kInvalidArgument, "routes is empty; leave it at look_up_route");
  return {};
}

std::string name_of(const Core::Parts& parts) {
  return parts.options.name.empty() ? fmt::format("{} port {}", parts.device, parts.facts.port) : parts.options.name;
}

}  // namespace

Result<std::shared_ptr<Core>> Core::create(ibv_pd* domain, Keeper domain_keeper, std::uint8_t port,
                                           AhDirectoryOptions options, std::shared_ptr<Account> account) {
  if (domain == nullptr) return failure(ErrorCode::kInvalidArgument, "a directory needs a protection domain");
  if (Status status = check_options(options); !status) return tl::make_unexpected(status.error());
  const Result<PortView> view = query_port(domain->context, port);
  if (!view) return tl::make_unexpected(view.error());
  ibv_device_attr device{};
  if (const int code = ibv_query_device(domain->context, &device); code != 0) {
    return rdma::verbs_failure("ibv_query_device", "", rdma::errno_of(code));
  }
  Parts parts;
  parts.domain = domain;
  parts.domain_keeper = std::move(domain_keeper);
  parts.facts = {.domain = domain, .port = port, .link_layer = view->link_layer, .grh_required = view->grh_required};
  parts.device = ibv_get_device_name(domain->context->device);
  parts.kind = rdma::kind_of(*domain->context->device);
  parts.max_entries = options.max_entries;
  if (device.max_ah > 0) parts.max_entries = std::min(parts.max_entries, static_cast<std::size_t>(device.max_ah));
  parts.options = with_bounded_times(std::move(options));
  parts.seat = Arbiter::of(domain->context, device.max_ah > 0 ? static_cast<std::size_t>(device.max_ah) : 0);
  parts.account = account ? std::move(account) : std::make_shared<Account>(name_of(parts), AccountLimits{});
  try {
    // Not in one piece: who only watches for its end keeps no memory of it.
    std::shared_ptr<Core> core(new Core(std::move(parts)));
    core->arbiter_->join(core->account_, core.get(), [weak = std::weak_ptr<Core>(core)](const Arbiter::Call& call) {
      const std::shared_ptr<Core> giver = weak.lock();
      return giver ? giver->give_idle(call) : 0;
    });
    if (Status watching = core->watch(); !watching) return tl::make_unexpected(watching.error());
    if (core->options_.visible) core->show();
    return core;
  } catch (const std::system_error& error) {
    return rdma::verbs_failure("thread", "of the directory", error.code().value());
  }
}

void Core::show() {
  Result<std::shared_ptr<ReportServer>> server = ReportServer::of_this_process();
  if (!server) return;
  report_server_ = std::move(*server);
  shown_ = report_server_->add(ReportSource{.name = name_,
                                            .stats = [this] { return stats(); },
                                            .rows = [this] { return rows(); },
                                            .account = account_.get()});
}

// Called once, before anybody else has it. The table is read when all that tells of its changes is listened to: between
// the two, a change would be neither seen nor heard.
Status Core::watch() {
  if (options_.watch_async_events) {
    Result<std::shared_ptr<rdma::EventWatcher>> watcher = rdma::EventWatcher::of(domain_->context);
    if (!watcher) return tl::make_unexpected(watcher.error());
    watcher_ = std::move(*watcher);
    watch_ = watcher_->subscribe([this](const ibv_async_event& event) { on_async_event(event); });
  }
  // Behind an InfiniBand port there are no neighbours, and its subnet manager tells what changes.
  if (options_.watch_network && facts_.link_layer == LinkLayer::kEthernet) {
    Result<std::shared_ptr<NetworkWatcher>> network = NetworkWatcher::of_this_namespace();
    if (!network) return tl::make_unexpected(network.error());
    network_ = std::move(*network);
    network_watch_ = network_->subscribe([this](const NetworkChange& change) { on_network_change(change); });
  }
  gids_.invalidate();
  bool changed = false;
  static_cast<void>(read_own(changed));  // where it fails, the keeper tries again
  return {};
}

Core::Core(Parts parts)
    : domain_(parts.domain),
      domain_keeper_(std::move(parts.domain_keeper)),
      facts_(parts.facts),
      device_(parts.device),
      kind_(parts.kind),
      options_(parts.options),
      name_(name_of(parts)),
      max_entries_(parts.max_entries),
      arbiter_(parts.seat->arbiter),
      account_(std::move(parts.account)),
      seed_(random_seed()),
      light_(has_membarrier()),
      gids_(domain_->context),
      table_(seed_),
      index_(std::bit_ceil(max_entries_), kNoSlot),
      by_slot_(max_entries_, nullptr),
      hop_tags_(max_entries_, 0),
      seat_(std::move(parts.seat)),
      pool_(options_.creators) {
  free_slots_.reserve(max_entries_);
  for (std::size_t slot = max_entries_; slot > 0; --slot) free_slots_.push_back(static_cast<std::uint32_t>(slot - 1));
  keeper_ = std::thread([this] { keep(); });
}

// The last handle is gone, and so are the threads. What shut_down() had to leave on the device, and reported, may have
// become free since; where the application keeps the domain, that may be gone too.
Core::~Core() {
  if (keeper_.joinable()) shut_down();  // create() failed after the threads had begun
  if (domain_keeper_) sweep();
  name_what_stays();
  leave_arbiter();
  const auto forgotten_charged =
      std::count_if(forgotten_.begin(), forgotten_.end(), [](const Binding* binding) { return binding->charged; });
  account_->release_memory((table_.size() - unpaid_ + static_cast<std::size_t>(forgotten_charged)) * kDestinationBytes);
  account_->release_memory(senders_.size() * max_entries_ * sizeof(std::uint64_t));
  table_.for_each([this](Binding& binding) { binding_pool_.destroy(&binding); });
  for (Binding* binding : forgotten_) binding_pool_.destroy(binding);
  for (Entry* entry : by_slot_) {
    if (entry != nullptr) entry_pool_.destroy(entry);
  }
}

std::int64_t Core::now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Deadline::Clock::now().time_since_epoch()).count();
}

}  // namespace verbena::ah
