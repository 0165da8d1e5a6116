#include "verbena/tenant.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "ah/core.h"
#include "ah/report_server.h"
#include "ah/report_text.h"
#include "verbena/verbs_object.h"

namespace verbena {

struct Tenant::State {
  TenantOptions options;
  CallSite place;
  ProtectionDomain domain;
  std::shared_ptr<ah::Arbiter> arbiter;
  std::shared_ptr<const ah::Seat> seat;  // until the domain is released
  std::shared_ptr<ah::Account> account;
  std::mutex mutex;
  std::vector<std::weak_ptr<ah::Core>> directories;  // guarded by mutex
  bool closed = false;                               // guarded by mutex
  // With its first directory that shows itself; null before it. Guarded by mutex, as the next.
  std::shared_ptr<ah::ReportServer> report_server;
  ah::ReportServer::Ticket shown = 0;

  void show();  // Requires: mutex
  ah::TenantBudget budget() const;

  tl::unexpected<Error> is_closed() const {
    return failure(ErrorCode::kUnavailable, fmt::format("tenant {} is closed", options.name));
  }
};

// Best effort, as a directory shows itself.
void Tenant::State::show() {
  if (report_server) return;
  Result<std::shared_ptr<ah::ReportServer>> server = ah::ReportServer::of_this_process();
  if (!server) return;
  report_server = std::move(*server);
  shown = report_server->add(
      ah::TenantSource{.name = options.name, .budget = [this] { return budget(); }, .account = account.get()});
}

ah::TenantBudget Tenant::State::budget() const {
  return {.handles_limit = options.max_handles,
          .share = arbiter->share(),
          .memory = account->memory(),
          .memory_limit = options.max_memory,
          .creations_limit = options.creations_per_second};
}

std::string TenantRelease::in_words() const {
  std::string text =
      fmt::format("{} director{} closed, {} address handle(s) destroyed, protection domain {}", directories,
                  directories == 1 ? "y" : "ies", address_handles, domain ? "released" : "kept");
  for (const AhLeftover& one : left) text += "; " + verbena::in_words(one);
  for (const LiveObject& object : leaked) text += "; still there: " + verbena::in_words(object);
  if (!domain && !status) text += "; " + status.error().message;
  return text;
}

namespace {

Status check(const TenantOptions& options) {
  if (options.creations_per_second > ah::TokenBucket::kMostPerSecond) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("creations_per_second is {}; use 1 to {}, or 0 for no limit",
                               options.creations_per_second, ah::TokenBucket::kMostPerSecond));
  }
  if (options.creations_per_second != 0 && options.creation_burst == 0) {
    return failure(ErrorCode::kInvalidArgument,
                   "creation_burst is 0, which never lets anything be created; use 1 or more");
  }
  if (options.max_memory != 0 && options.max_memory < ah::Core::kDestinationBytes) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("max_memory is {} bytes, and one destination takes {}; use more, or 0 for no limit",
                               options.max_memory, ah::Core::kDestinationBytes));
  }
  if (options.close_grace.count() < 0) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("close_grace is {} ns; use 0 or more", options.close_grace.count()));
  }
  return {};
}

}  // namespace

Result<Tenant> Tenant::create(const Context& context, TenantOptions options, CallSite place) {
  if (Status status = check(options); !status) return tl::make_unexpected(status.error());
  Result<ProtectionDomain> domain = ProtectionDomain::create(context, place);
  if (!domain) return tl::make_unexpected(domain.error());
  const Result<ibv_device_attr> device = context.query_device();
  if (!device) return tl::make_unexpected(device.error());
  auto state = std::make_unique<State>();
  if (options.name.empty()) options.name = "a tenant of " + context.name();
  options.close_grace = std::min<std::chrono::nanoseconds>(options.close_grace, std::chrono::hours(24 * 365));
  state->account = std::make_shared<ah::Account>(options.name,
                                                 ah::AccountLimits{.max_handles = options.max_handles,
                                                                   .max_memory = options.max_memory,
                                                                   .creations_per_second = options.creations_per_second,
                                                                   .creation_burst = options.creation_burst});
  state->seat = ah::Arbiter::of(context.get(), device->max_ah > 0 ? static_cast<std::size_t>(device->max_ah) : 0);
  state->arbiter = state->seat->arbiter;
  state->options = std::move(options);
  state->place = place;
  state->domain = std::move(*domain);
  // A member without directories: its share is kept for it from now on.
  state->arbiter->join(state->account, state.get(), {});
  return Tenant(std::move(state));
}

Tenant::Tenant(std::unique_ptr<State> state) : state_(state.release()) {}

void Tenant::Delete::operator()(State* state) const noexcept {
  if (state->report_server) state->report_server->remove(state->shown);
  state->arbiter->leave(state);
  delete state;
}

Tenant& Tenant::operator=(Tenant&& other) noexcept {
  Tenant old;
  old.state_ = std::move(state_);
  state_ = std::move(other.state_);
  return *this;
}

Tenant::~Tenant() {
  if (!state_) return;
  const TenantRelease released =
      close(Deadline::in(std::chrono::duration_cast<Deadline::Clock::duration>(state_->options.close_grace)));
  if (released.complete()) return;
  detail::report_release_failure({ErrorCode::kBusy, 0,
                                  fmt::format("tenant {} (made at {}:{}): {}", state_->options.name,
                                              state_->place.file_name(), state_->place.line(), released.in_words())});
}

const std::string& Tenant::name() const {
  static const auto& none = *new std::string;
  return state_ ? state_->options.name : none;
}

const ProtectionDomain& Tenant::domain() const {
  static const auto& none = *new ProtectionDomain;
  return state_ ? state_->domain : none;
}

// Made without the mutex, which no call of the device is to hold up.
Result<AhDirectory> Tenant::directory(std::uint8_t port, AhDirectoryOptions options) {
  if (!state_) return failure(ErrorCode::kInvalidArgument, "the tenant is empty: moved from, or not made by create()");
  ibv_pd* domain = nullptr;
  Keeper keeper;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->closed) return state_->is_closed();
    domain = state_->domain.get();
    keeper = state_->domain.keeper();
    if (options.visible) state_->show();
  }
  if (options.name.empty()) options.name = fmt::format("{} port {}", state_->options.name, port);
  if (state_->options.max_handles != 0) {
    options.max_entries = std::min(options.max_entries, state_->options.max_handles);
  }
  Result<std::shared_ptr<ah::Core>> core =
      ah::Core::create(domain, std::move(keeper), port, std::move(options), state_->account);
  if (!core) return tl::make_unexpected(core.error());
  AhDirectory directory(*core);
  const std::lock_guard lock(state_->mutex);
  if (state_->closed) return state_->is_closed();
  std::erase_if(state_->directories, [](const std::weak_ptr<ah::Core>& one) { return one.expired(); });
  state_->directories.emplace_back(*core);
  return directory;
}

TenantUsage Tenant::usage() const {
  if (!state_) return {};
  return {.handles = state_->arbiter->used(*state_->account),
          .share = state_->arbiter->share(),
          .memory = state_->account->memory()};
}

TenantRelease Tenant::close(Deadline deadline) {
  TenantRelease released;
  released.domain = !state_;
  if (!state_) return released;
  std::vector<std::weak_ptr<ah::Core>> directories;
  {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    directories = state_->directories;
  }
  for (const std::weak_ptr<ah::Core>& weak : directories) {
    const std::shared_ptr<ah::Core> core = weak.lock();
    if (!core) continue;
    const std::uint64_t before = core->stats().destroyed;
    AhLeftover left = core->close(deadline);
    ++released.directories;
    released.address_handles += core->stats().destroyed - before;
    core->let_go_of_domain();
    if (!left.empty()) released.left.push_back(std::move(left));
  }
  if (state_->domain) {
    released.leaked = live_objects(state_->domain.get());
    released.status = state_->domain.close();
  }
  released.domain = !state_->domain;
  if (released.domain) {
    state_->arbiter->leave(state_.get());
    state_->seat.reset();
  }
  return released;
}

}  // namespace verbena
