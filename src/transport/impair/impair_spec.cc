#include "transport/impair/impair_spec.h"

#include <string>

#include "base/setting_value.h"

namespace verbena::transport {
namespace {

constexpr std::string_view kVariable = "VERBENA_IMPAIR";
constexpr std::string_view kKeys = "loss, dup, reorder, corrupt, mark, delay, jitter, seed";

Status put_value(ImpairSpec& spec, std::string_view part, std::string_view key, std::string_view value) {
  const auto probability = [&](double& into) {
    return put_part(kVariable, part, parse_probability(value), into, kWantsProbability);
  };
  const auto duration = [&](Duration& into) {
    return put_part(kVariable, part, parse_duration(value), into, kWantsDuration);
  };
  if (key == "loss") return probability(spec.loss);
  if (key == "dup") return probability(spec.duplicate);
  if (key == "reorder") return probability(spec.reorder);
  if (key == "corrupt") return probability(spec.corrupt);
  if (key == "mark") return probability(spec.mark);
  if (key == "delay") return duration(spec.delay);
  if (key == "jitter") return duration(spec.jitter);
  if (key == "seed") return put_part(kVariable, part, parse_whole(value), spec.seed, kWantsWhole);
  return wrong_part(kVariable, part, "is not known: there are " + std::string(kKeys));
}

}  // namespace

Result<ImpairSpec> parse_impair_spec(std::string_view text) {
  ImpairSpec spec;
  const auto put = [&spec](std::string_view part, std::string_view key, std::string_view value) {
    return put_value(spec, part, key, value);
  };
  if (auto status = for_each_part(kVariable, text, put); !status) return tl::make_unexpected(status.error());
  return spec;
}

}  // namespace verbena::transport
