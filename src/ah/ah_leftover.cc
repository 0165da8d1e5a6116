// What is left, and who holds on, in words.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "ah/attributes.h"
#include "verbena/ah_report.h"

namespace verbena {

namespace {

constexpr std::size_t kMostNamed = 8;  // of a list; the rest is counted

std::string in_words(const CallSite& place) {
  return fmt::format("at {}:{}, in {}", place.file_name(), place.line(), place.function_name());
}

template <class Items, class Words>
std::string listed(const Items& items, const char* between, Words words) {
  std::string text;
  for (std::size_t i = 0; i < std::min(items.size(), kMostNamed); ++i)
    text += (i == 0 ? "" : between) + words(items[i]);
  if (items.size() > kMostNamed) text += fmt::format("{}and {} more", between, items.size() - kMostNamed);
  return text;
}

std::string kept_in_words(const AhRow& row) {
  std::string why;
  const auto add = [&why](const std::string& reason) { why += (why.empty() ? "" : ", ") + reason; };
  if (row.leases != 0) add(fmt::format("{} lease(s)", row.leases));
  if (row.in_flight) add("named by work in flight");
  if (!row.last_error.empty()) add(row.last_error);
  if (row.state == AhState::kPending) add("its creation is under way");
  return ah::in_words(row.destination) + (why.empty() ? "" : " (" + why + ")");
}

}  // namespace

std::string in_words(const AhHolding& holding) {
  return fmt::format("{} {}(s) of {}, held for {:.1f} s (taken {})", holding.count, holding.lease ? "lease" : "handle",
                     ah::in_words(holding.destination), std::chrono::duration<double>(holding.held).count(),
                     in_words(holding.place));
}

std::string in_words(const AhSenderRest& rest) {
  if (rest.empty()) return fmt::format("all completed (sender made {})", in_words(rest.place));
  const auto of = [](const Destination& destination) { return ah::in_words(destination); };
  return fmt::format("{} work request(s) not completed, positions {} to {}{}{} (sender made {})", rest.outstanding(),
                     rest.completed + 1, rest.position, rest.destinations.empty() ? "" : ", to ",
                     listed(rest.destinations, ", ", of), in_words(rest.place));
}

std::string in_words(const AhLeftover& left) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (!left.rows.empty()) {
    add(fmt::format("{} address handle(s) are left on the device: {}", left.rows.size(),
                    listed(left.rows, ", ", kept_in_words)));
  }
  if (left.calls_under_way) add("a call into the device, or a look-up in the network, has not returned");
  const auto words = [](const auto& one) { return in_words(one); };
  if (!left.senders.empty()) add(listed(left.senders, "; ", words));
  if (!left.held.empty()) add(listed(left.held, "; ", words));
  return text.empty() ? "nothing is left" : text;
}

}  // namespace verbena
