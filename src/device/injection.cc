#include "device/injection.h"

#include <cstring>
#include <optional>
#include <string>

#include "base/setting_value.h"

namespace verbena::device {
namespace {

constexpr std::string_view kVariable = "VERBENA_INJECT";
constexpr int kHighestErrno = 133;
constexpr std::uint64_t kEventStream = kObjectKinds;

std::optional<int> parse_errno(std::string_view text) {
  for (int number = 1; number <= kHighestErrno; ++number) {
    const char* name = strerrorname_np(number);
    if (name != nullptr && text == name) return number;
  }
  return std::nullopt;
}

std::optional<ObjectKind> kind_of_call(std::string_view call) {
  for (std::size_t i = 0; i < kObjectKinds; ++i) {
    if (kObjectRows[i].call == call) return static_cast<ObjectKind>(i);
  }
  return std::nullopt;
}

std::string known_keys() {
  std::string keys;
  for (const ObjectRow& row : kObjectRows) keys += std::string(row.call) + ", ";
  return "is not known: there are the calls " + keys +
         "each with .delay, .fail, .after, .times and .chance, and events.lose and seed";
}

// "3s", or "1us..3s".
Status put_delay(std::string_view part, std::string_view value, CallFault& fault) {
  const auto dots = value.find("..");
  const auto shortest = parse_duration(value.substr(0, dots));
  const auto longest = dots == std::string_view::npos ? shortest : parse_duration(value.substr(dots + 2));
  if (!shortest || !longest || *longest < *shortest) {
    return wrong_part(kVariable, part, "is no time or range of times: write 10us, or 1ms..3s, up to 60s");
  }
  fault.shortest = *shortest;
  fault.longest = *longest;
  return {};
}

Status put_fault(std::string_view part, std::string_view what, std::string_view value, CallFault& fault) {
  if (what == "delay") return put_delay(part, value, fault);
  if (what == "fail") {
    return put_part(kVariable, part, parse_errno(value), fault.error, "is no errno: write its name, such as ENOMEM");
  }
  if (what == "after") return put_part(kVariable, part, parse_whole(value), fault.after, kWantsWhole);
  if (what == "times") return put_part(kVariable, part, parse_whole(value), fault.times, kWantsWhole);
  if (what == "chance") return put_part(kVariable, part, parse_probability(value), fault.chance, kWantsProbability);
  return wrong_part(kVariable, part, known_keys());
}

Status put_value(InjectionSpec& spec, std::string_view part, std::string_view key, std::string_view value) {
  if (key == "seed") return put_part(kVariable, part, parse_whole(value), spec.seed, kWantsWhole);
  if (key == "events.lose") {
    return put_part(kVariable, part, parse_probability(value), spec.lose_events, kWantsProbability);
  }
  const auto dot = key.find('.');
  const auto kind = kind_of_call(key.substr(0, dot));
  if (!kind || dot == std::string_view::npos) return wrong_part(kVariable, part, known_keys());
  return put_fault(part, key.substr(dot + 1), value, spec.calls[static_cast<std::size_t>(*kind)]);
}

// Uniform in [0, 1): the finaliser of splitmix64 over seed, stream and number.
double draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t number) noexcept {
  std::uint64_t mixed = seed + 0x9e3779b97f4a7c15ULL * (number + 1) + (stream << 56);
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
  mixed ^= mixed >> 31;
  constexpr double kOneIn53Bits = 1.0 / 9007199254740992.0;
  return static_cast<double>(mixed >> 11) * kOneIn53Bits;
}

}  // namespace

Result<InjectionSpec> parse_injection(std::string_view text) {
  InjectionSpec spec;
  const auto put = [&spec](std::string_view part, std::string_view key, std::string_view value) {
    return put_value(spec, part, key, value);
  };
  if (auto status = for_each_part(kVariable, text, put); !status) return tl::make_unexpected(status.error());
  for (std::size_t i = 0; i < kObjectKinds; ++i) {
    const CallFault& fault = spec.calls[i];
    const CallFault none;
    if (fault.error == 0 && (fault.after != none.after || fault.times != none.times || fault.chance != none.chance)) {
      return failure(ErrorCode::kInvalidArgument,
                     std::string(kVariable) + ": " + std::string(kObjectRows[i].call) +
                         ".after, .times and .chance say when a call fails; say with .fail how, as in " +
                         std::string(kObjectRows[i].call) + ".fail=ENOMEM.");
    }
  }
  return spec;
}

Injection::Verdict Injection::on_call(ObjectKind kind) noexcept {
  const auto index = static_cast<std::size_t>(kind);
  const CallFault& fault = spec_.calls[index];
  const std::uint64_t number = calls_[index].fetch_add(1, std::memory_order_relaxed);
  Verdict verdict;
  const double spread = static_cast<double>((fault.longest - fault.shortest).count());
  verdict.delay = fault.shortest + Duration(static_cast<std::int64_t>(spread * draw(spec_.seed, index, 2 * number)));
  const bool its_turn = number >= fault.after && number - fault.after < fault.times;
  if (its_turn && draw(spec_.seed, index, 2 * number + 1) < fault.chance) verdict.error = fault.error;
  return verdict;
}

bool Injection::loses_event() noexcept {
  if (spec_.lose_events == 0) return false;
  return draw(spec_.seed, kEventStream, events_.fetch_add(1, std::memory_order_relaxed)) < spec_.lose_events;
}

}  // namespace verbena::device
