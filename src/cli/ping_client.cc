#include "cli/ping_client.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <poll.h>

#include "cli/clock.h"
#include "cli/ping_datagram.h"
#include "cli/spin_budget.h"
#include "cli/stop_signal.h"
#include "verbena/deadline.h"

namespace verbena::cli {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLongestSleep = 50ms;     // so that a stop signal and the server's end are noticed
constexpr Duration kAddressRetry = 50ms;     // after a datagram for which there was no address handle
constexpr Duration kControlInterval = 20ms;  // between two looks at the control channel

// One run, while it goes on.
class Run {
 public:
  Run(UdEndpoint& endpoint, const ControlChannel& channel, const PingPlan& plan, const PostPing& post)
      : endpoint_(endpoint),
        channel_(channel),
        plan_(plan),
        post_(post),
        outcome_{RoundTrips(plan.timeout), {}, {}, {}, false} {}

  Result<PingOutcome> until_end(ProgressBar& progress);

 private:
  bool all_sent() const noexcept { return stopping_ || (plan_.count != 0 && tried() >= plan_.count); }
  std::uint64_t tried() const noexcept { return book().counts().sent + book().counts().unsent; }
  bool is_over() const noexcept { return all_sent() && book().outstanding() == 0; }
  bool may_send(Instant time) const noexcept {
    return !all_sent() && book().outstanding() < plan_.window && time >= next_send_ && endpoint_.can_send(0);
  }
  const RoundTrips& book() const noexcept { return outcome_.round_trips; }
  RoundTrips& book() noexcept { return outcome_.round_trips; }

  Status send_one();
  Status send_what_is_due(Instant time);
  Status book_replies(std::span<const Arrival> arrivals, Instant time);
  Status sleep(Instant time);
  bool server_is_gone(Instant time);

  UdEndpoint& endpoint_;
  const ControlChannel& channel_;
  const PingPlan& plan_;
  const PostPing& post_;
  PingOutcome outcome_;
  std::string unsent_;  // of the last send
  Instant next_send_;
  Instant last_reply_;
  Instant last_control_;
  bool stopping_ = false;
  SpinBudget spin_;
};

Status Run::send_one() {
  write_ping(endpoint_.payload(0).first(plan_.size), {plan_.client, book().next_sequence()});
  const Instant time = now();
  unsent_.clear();
  Status status = post_(book().on_sent(time), unsent_);
  next_send_ = time + plan_.interval;
  if (!status) {
    book().on_refused();
  } else if (!unsent_.empty()) {
    book().on_unsent();
    outcome_.unsent_why = unsent_;
    next_send_ = time + std::max(plan_.interval, kAddressRetry);
  }
  return status;
}

Status Run::send_what_is_due(Instant time) {
  if (!endpoint_.can_send(0)) return endpoint_.poll_sends();
  while (may_send(time)) {
    if (Status status = send_one(); !status) return status;
    if (plan_.interval > 0ns) break;
  }
  return {};
}

Status Run::book_replies(std::span<const Arrival> arrivals, Instant time) {
  if (!arrivals.empty()) {
    spin_.on_wait(time - last_reply_);
    last_reply_ = time;
  }
  for (const Arrival& arrival : arrivals) {
    const std::span<const std::byte> payload = endpoint_.received(arrival);
    const auto header = read_ping(payload);
    if (header && header->client == plan_.client) {
      book().on_reply(header->sequence, payload.size() == plan_.size && is_intact(payload), time);
    }
    if (Status status = endpoint_.repost(arrival); !status) return status;
  }
  return {};
}

// Until an answer comes, or something is due.
Status Run::sleep(Instant time) {
  Instant until = time + kLongestSleep;
  if (!all_sent() && book().outstanding() < plan_.window) until = std::min(until, next_send_);
  if (const auto timeout = book().next_timeout()) until = std::min(until, *timeout);
  if (until <= time) return {};
  const auto arrivals = endpoint_.wait_receives(Deadline::in(until - time));
  if (!arrivals) return tl::make_unexpected(arrivals.error());
  return book_replies(*arrivals, now());
}

bool Run::server_is_gone(Instant time) {
  if (time - last_control_ < kControlInterval) return false;
  last_control_ = time;
  pollfd channel{channel_.fd(), POLLIN | POLLRDHUP, 0};
  return ::poll(&channel, 1, 0) > 0 && (channel.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

Result<PingOutcome> Run::until_end(ProgressBar& progress) {
  const Instant start = now();
  last_reply_ = last_control_ = start;
  Instant time = start;
  for (; !is_over(); time = now()) {
    if (server_is_gone(time)) {
      outcome_.ended_by = "the server ended the session";
      outcome_.cut_short = true;
      break;
    }
    if (!stopping_ && (stop_requested() || (plan_.time_limit > 0ns && time - start > plan_.time_limit))) {
      outcome_.ended_by = stop_requested() ? "stopped" : "the time limit";
      stopping_ = true;  // what is under way is still waited for
    }
    if (Status status = send_what_is_due(time); !status) return tl::make_unexpected(status.error());
    const auto arrivals = endpoint_.poll_receives();
    if (!arrivals) return tl::make_unexpected(arrivals.error());
    if (!arrivals->empty()) {
      if (Status status = book_replies(*arrivals, now()); !status) return tl::make_unexpected(status.error());
      continue;
    }
    book().on_time(time);
    progress.update(tried() - book().outstanding(), time);
    if (time - last_reply_ > spin_.limit()) {
      if (Status status = sleep(time); !status) return tl::make_unexpected(status.error());
    }
  }
  progress.clear();
  book().on_end();
  outcome_.elapsed = time - start;
  return std::move(outcome_);
}

}  // namespace

Result<PingOutcome> run_ping(UdEndpoint& endpoint, const ControlChannel& channel, const PingPlan& plan,
                             const PostPing& post, ProgressBar& progress) {
  return Run(endpoint, channel, plan, post).until_end(progress);
}

Status send_through_directory(UdEndpoint& endpoint, const AhHandle& handle, const UdPeer& peer, std::size_t size,
                              std::string& unsent) {
  ibv_ah* address = endpoint.sender(0).next(handle);
  if (address == nullptr) {
    const auto again = endpoint.directory().acquire(handle.destination(), Deadline::in(0ns));
    unsent = again ? "it is being replaced" : again.error().message;
    return {};
  }
  return endpoint.send(0, {address, peer.qpn, peer.qkey}, size);
}

}  // namespace verbena::cli
