// Tenants: budgets, walls between them, and an end that says what was given back and who holds on.
#include <array>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "checks.h"
#include "end.h"
#include "verbena/release_failure.h"
#include "verbena/tenant.h"

namespace verbena::on_device {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 20s;

Tenant tenant(const World& world, TenantOptions options) {
  return must(Tenant::create(world.near, std::move(options)), "tenant");
}
AhDirectory directory(Tenant& of, AhDirectoryOptions options = {}) {
  return must(of.directory(1, std::move(options)), "directory");
}
AhHandle acquire(AhDirectory& directory, const Destination& to) {
  return must(directory.acquire(to, Deadline::in(kPatience)), "acquire");
}

// What destructors report while this is there.
class Reported {
 public:
  Reported() {
    set_release_failure_handler([this](const Error& error) {
      const std::lock_guard lock(mutex_);
      text_ += error.message + "\n";
    });
  }
  ~Reported() { set_release_failure_handler({}); }
  Reported(const Reported&) = delete;
  Reported& operator=(const Reported&) = delete;
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;  // guarded by mutex_
};

void budget_of_handles(const World& world, Findings& findings) {
  constexpr std::size_t kBudget = 8;
  Tenant small = tenant(world, {.name = "small", .max_handles = kBudget});
  Tenant other = tenant(world, {.name = "other"});
  AhDirectory first = directory(small);
  AhDirectory second = directory(small);
  std::vector<AhHandle> held;
  for (std::uint32_t i = 0; i < kBudget; ++i) {
    held.push_back(acquire(i % 2 == 0 ? first : second, destination(world.v4, 1 + i)));
  }
  const auto refused = first.acquire(destination(world.v4, 100), Deadline::in(kPatience));
  findings.expect(!refused && refused.error().code == ErrorCode::kExhausted, "the ninth is refused as exhausted");
  if (!refused) findings.expect_holds(refused.error().message, "all 8 address handles that small may have");
  AhDirectory unconcerned = directory(other);
  findings.expect(!acquire(unconcerned, destination(world.v4, 100)).empty(), "another tenant has room");
  held.erase(held.begin());  // of the first directory: room for the second as well
  findings.expect(!acquire(second, destination(world.v4, 101)).empty(), "what was dropped makes room");
  findings.expect(small.usage().handles <= kBudget, "the budget holds");
  held.clear();
  for (Tenant* one : {&small, &other}) findings.expect(one->close(Deadline::in(kPatience)).complete(), "it closes");
}

void rate_of_creations(const World& world, Findings& findings) {
  constexpr std::uint64_t kPerSecond = 10, kBurst = 5, kAsked = 20;
  Tenant slow = tenant(world, {.name = "slow", .creations_per_second = kPerSecond, .creation_burst = kBurst});
  Tenant other = tenant(world, {.name = "other"});
  AhDirectory paced = directory(slow);
  AhDirectory free = directory(other);
  std::vector<Destination> all;
  for (std::uint32_t i = 0; i < kAsked; ++i) all.push_back(destination(world.v4, 1 + i));
  const auto begin = std::chrono::steady_clock::now();
  paced.prewarm(all);
  for (std::uint32_t i = 0; i < kAsked; ++i) acquire(free, destination(world.v4, 1 + i));
  findings.expect(within(kPatience, [&] { return paced.stats().ready == kAsked; }), "all are made in the end");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const double least = static_cast<double>(kAsked - kBurst) / kPerSecond;
  findings.note("20 creations at 10 a second after a burst of 5 took s", took.count());
  findings.expect(took.count() > least * 0.95, "the rate holds: at least " + std::to_string(least) + " s");
  findings.expect(paced.stats().paced > 0, "waiting is counted");
  findings.expect_equal<std::uint64_t>(free.stats().paced, 0, "of the other tenant");
  for (Tenant* one : {&slow, &other}) findings.expect(one->close(Deadline::in(kPatience)).complete(), "it closes");
}

void budget_of_memory(const World& world, Findings& findings) {
  Tenant thin = tenant(world, {.name = "thin", .max_memory = 12'000});
  AhDirectoryOptions few;
  few.max_entries = 64;
  AhDirectory small = directory(thin, few);
  std::vector<AhHandle> held;
  std::string refused;
  for (std::uint32_t i = 0; i < 200 && refused.empty(); ++i) {
    auto handle = small.acquire(destination(world.v4, 1 + i), Deadline::in(kPatience));
    if (handle) held.push_back(std::move(*handle));
    if (!handle) refused = handle.error().message;
  }
  findings.expect_holds(refused, "memory of the tenant");
  findings.expect(held.size() > 10 && thin.usage().memory <= 12'000, "the budget is used, and no more than that");
  held.clear();
  findings.expect(thin.close(Deadline::in(kPatience)).complete(), "it closes");
}

void walls(const World& world, Findings& findings) {
  Tenant one = tenant(world, {.name = "one"});
  Tenant two = tenant(world, {.name = "two"});
  AhDirectory of_one = directory(one);
  AhDirectory of_two = directory(two);
  const Destination to = destination(world.v4);
  AhHandle theirs = acquire(of_one, to);
  AhSender sender = must(of_two.make_sender(), "sender");
  findings.expect(of_two.find(to).empty(), "what one has the other does not find");
  findings.expect(sender.next(to) == nullptr, "neither does its data path");
  findings.expect(sender.next(theirs) == nullptr, "a handle of another tenant is of no use");
  AhHandle own = acquire(of_two, to);
  {
    const AhLease a = must(theirs.lease(), "lease"), b = must(own.lease(), "lease");
    findings.expect(a.get() != b.get() && a.get()->pd != b.get()->pd, "each has an address handle of its own domain");
  }
  theirs = {};
  findings.expect(one.close(Deadline::in(kPatience)).complete(), "one goes");
  findings.expect(sender.next(own) != nullptr, "and the other stays as it is");
  sender.retract(1);
  own = {};
  sender = {};
  findings.expect(two.close(Deadline::in(kPatience)).complete(), "it closes");
}

void release(const World& world, Findings& findings) {
  constexpr std::uint32_t kHandles = 100;
  Tenant leaving = tenant(world, {.name = "leaving"});
  AhDirectory first = directory(leaving);
  AhDirectory second = directory(leaving);
  for (std::uint32_t i = 0; i < kHandles; ++i) acquire(i % 2 == 0 ? first : second, destination(world.v4, 1 + i));
  const TenantRelease released = leaving.close(Deadline::in(kPatience));
  findings.note("in words", released.in_words());
  findings.expect(released.complete(), "the domain is given back");
  findings.expect_equal<std::uint64_t>(released.directories, 2, "directories closed");
  findings.expect_equal<std::uint64_t>(released.address_handles, kHandles, "address handles destroyed");
  findings.expect(!first.acquire(destination(world.v4), Deadline::in(1s)), "its directories find nothing any more");
}

// The kernel itself refuses to deallocate the domain, and does not say why.
void leaks_by_name(const World& world, Findings& findings) {
  Tenant leaky = tenant(world, {.name = "leaky"});
  AhDirectory addresses = directory(leaky);
  std::array<std::byte, 64> memory{};
  MemoryRegion region = must(MemoryRegion::create(leaky.domain(), memory), "memory region");
  CompletionQueue queue = must(CompletionQueue::create(world.near, 16), "completion queue");
  QueuePair pair = must(QueuePair::create_ud(leaky.domain(), queue, queue), "queue pair");
  AhHandle handle = acquire(addresses, destination(world.v4));
  AhLease lease = must(handle.lease(), "lease");
  const TenantRelease released = leaky.close(Deadline::in(100ms));
  const std::string said = released.in_words();
  findings.note("in words", said);
  findings.expect(!released.complete() && !released.status, "the domain is still there, and the kernel says no");
  for (const char* part : {"memory region of 64 bytes (made at ", "queue pair 0x", "completion queue", "lease",
                           "tenant_checks.cc:", "in leaks_by_name"}) {
    findings.expect_holds(said, part);
  }
  lease = {};
  handle = {};
  must(pair.close(), "closing the queue pair");
  must(region.close(), "closing the region");
  must(queue.close(), "closing the queue");
  findings.expect(leaky.close(Deadline::in(kPatience)).complete(), "once they are gone it closes");
}

// Nobody closed anything: the destructor tells, and gives back what it can.
void reported_at_the_end(const World& world, Findings& findings) {
  AhLease lease;
  QueuePair pair;
  CompletionQueue queue = must(CompletionQueue::create(world.near, 16), "completion queue");
  const Reported reported;
  {
    Tenant forgetful = tenant(world, {.name = "forgetful", .close_grace = 1ms});
    AhDirectory addresses = directory(forgetful);
    const AhHandle handle = acquire(addresses, destination(world.v4));
    lease = must(handle.lease(), "lease");
    pair = must(QueuePair::create_ud(forgetful.domain(), queue, queue), "queue pair");
  }
  const std::string said = reported.text();
  findings.note("reported", said);
  for (const char* part : {"tenant forgetful (made at ", "in reported_at_the_end", "queue pair 0x", "lease"}) {
    findings.expect_holds(said, part);
  }
  must(pair.close(), "closing the queue pair");
  lease = {};
  must(queue.close(), "closing the queue");
  findings.expect(within(kPatience, [] { return Ledger::of_this_process().alive() == 0; }),
                  "the handle goes with its lease");
}

constexpr std::array kChecks{
    Check{"a_budget_of_handles_holds_and_concerns_nobody_else", budget_of_handles},
    Check{"a_rate_of_creations_holds_and_concerns_nobody_else", rate_of_creations},
    Check{"a_budget_of_memory_holds", budget_of_memory},
    Check{"no_look_up_crosses_tenants", walls},
    Check{"a_tenant_that_goes_gives_all_back_and_says_so", release},
    Check{"what_keeps_a_domain_is_named_with_its_place", leaks_by_name},
    Check{"what_nobody_closed_is_reported_with_its_place", reported_at_the_end},
};

}  // namespace

std::span<const Check> tenant_checks() {
  return kChecks;
}

}  // namespace verbena::on_device
