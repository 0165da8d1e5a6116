#include "device/limits.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/setting_value.h"
#include "device/gid_table.h"

namespace verbena::device {
namespace {

using engine::Limits;

constexpr std::string_view kVariable = "VERBENA_LIMITS";

struct LimitRow {
  std::string_view name;
  std::uint32_t Limits::*field;
};
constexpr std::array kRows{
    LimitRow{"max_qp", &Limits::max_qp},           LimitRow{"max_qp_wr", &Limits::max_qp_wr},
    LimitRow{"max_sge", &Limits::max_sge},         LimitRow{"max_inline", &Limits::max_inline},
    LimitRow{"max_cq", &Limits::max_cq},           LimitRow{"max_cqe", &Limits::max_cqe},
    LimitRow{"max_mr", &Limits::max_mr},           LimitRow{"max_mw", &Limits::max_mw},
    LimitRow{"max_pd", &Limits::max_pd},           LimitRow{"max_ah", &Limits::max_ah},
    LimitRow{"max_srq", &Limits::max_srq},         LimitRow{"max_srq_wr", &Limits::max_srq_wr},
    LimitRow{"max_srq_sge", &Limits::max_srq_sge}, LimitRow{"max_xrcd", &Limits::max_xrcd},
    LimitRow{"max_flow", &Limits::max_flow},
};

std::string known_names() {
  std::string names;
  for (const LimitRow& row : kRows) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return "is not known: there are " + names;
}

}  // namespace

Limits standard_limits() noexcept {
  Limits limits;
  limits.gid_table_length = GidTable::kLength;
  limits.max_cqe = (1U << 22) - 1;  // as hardware, not rxe: perftest asks for 256,000 where it drives 16 queue pairs
  return limits;
}

Result<Limits> parse_limits(std::string_view text) {
  const Limits standard = standard_limits();
  Limits limits = standard;
  const auto put = [&](std::string_view part, std::string_view key, std::string_view value) -> Status {
    const auto row = std::find_if(kRows.begin(), kRows.end(), [key](const LimitRow& one) { return one.name == key; });
    if (row == kRows.end()) return wrong_part(kVariable, part, known_names());
    const auto number = parse_whole(value);
    const std::uint32_t most = standard.*row->field;
    if (!number || *number == 0 || *number > most) {
      return wrong_part(kVariable, part, "must be a whole number from 1 to " + std::to_string(most));
    }
    limits.*row->field = static_cast<std::uint32_t>(*number);
    return {};
  };
  if (auto status = for_each_part(kVariable, text, put); !status) return tl::make_unexpected(status.error());
  return limits;
}

}  // namespace verbena::device
