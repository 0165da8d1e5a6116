#include "rdma/transition_check.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace verbena::rdma {
namespace {

struct Transition {
  std::string_view type;
  std::string_view from;
  std::string_view to;
  std::string_view required;
  std::string_view optional;
};

// UC and RC share rows where the list is the same ("*").
constexpr std::array<Transition, 19> kTransitions{{
    {"UD", "RESET", "INIT", "PKEY_INDEX PORT QKEY", ""},
    {"UD", "INIT", "INIT", "", "PKEY_INDEX PORT QKEY"},
    {"UD", "INIT", "RTR", "", "PKEY_INDEX QKEY"},
    {"UD", "RTR", "RTS", "SQ_PSN", "CUR_STATE QKEY"},
    {"UD", "RTS", "RTS", "", "CUR_STATE QKEY"},
    {"UD", "SQD", "RTS", "", "CUR_STATE QKEY"},
    {"UD", "SQD", "SQD", "", "PKEY_INDEX QKEY"},
    {"UD", "SQE", "RTS", "", "CUR_STATE QKEY"},
    {"*", "RESET", "INIT", "PKEY_INDEX PORT ACCESS_FLAGS", ""},
    {"*", "INIT", "INIT", "", "PKEY_INDEX PORT ACCESS_FLAGS"},
    {"UC", "INIT", "RTR", "AV PATH_MTU DEST_QPN RQ_PSN", "ALT_PATH ACCESS_FLAGS PKEY_INDEX"},
    {"RC", "INIT", "RTR", "AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER",
     "ALT_PATH ACCESS_FLAGS PKEY_INDEX"},
    {"UC", "RTR", "RTS", "SQ_PSN", "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE"},
    {"RC", "RTR", "RTS", "TIMEOUT RETRY_CNT RNR_RETRY SQ_PSN MAX_QP_RD_ATOMIC",
     "CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE"},
    {"*", "RTS", "RTS", "", "CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE MIN_RNR_TIMER"},
    {"*", "SQD", "RTS", "", "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE MIN_RNR_TIMER"},
    {"UC", "SQD", "SQD", "", "AV ALT_PATH ACCESS_FLAGS PKEY_INDEX PATH_MIG_STATE"},
    {"RC", "SQD", "SQD", "",
     "PORT AV TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC MAX_DEST_RD_ATOMIC ALT_PATH ACCESS_FLAGS PKEY_INDEX "
     "MIN_RNR_TIMER PATH_MIG_STATE"},
    {"UC", "SQE", "RTS", "", "CUR_STATE ACCESS_FLAGS"},
}};

// Into an uncommon state no attribute is needed.
constexpr std::array<std::string_view, 7> kStates{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

std::string upper_without_prefix(std::string_view word) {
  std::string text(word);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  for (const std::string_view prefix : {"IBV_QPS_", "IBV_QPT_", "IBV_QP_"}) {
    if (text.compare(0, prefix.size(), prefix) == 0) return text.substr(prefix.size());
  }
  return text;
}

std::set<std::string> words_of(std::string_view text) {
  std::set<std::string> words;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find_first_of(" |,+"));
    if (!word.empty()) words.insert(upper_without_prefix(word));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return words;
}

std::string value_of(const Attributes& attributes, const std::string& name, std::string_view otherwise) {
  const auto found = attributes.find(name);
  return found == attributes.end() ? std::string(otherwise) : upper_without_prefix(found->second);
}

const Transition* find_transition(std::string_view type, std::string_view from, std::string_view to) {
  for (const Transition& row : kTransitions) {
    const bool of_type = row.type == type || (row.type == "*" && type != "UD");
    if (of_type && row.from == from && row.to == to) return &row;
  }
  return nullptr;
}

// States that a queue pair of `type` can be in before it goes to `to`.
std::string from_where(std::string_view type, std::string_view to) {
  std::string states;
  for (const std::string_view from : kStates) {
    if (find_transition(type, from, to) != nullptr) states += fmt::format("{}{}", states.empty() ? "" : ", ", from);
  }
  return states.empty() ? "no state" : states;
}

std::vector<AttributeFinding> check_mask(const Transition& row, const std::set<std::string>& mask) {
  std::vector<AttributeFinding> findings;
  const std::set<std::string> required = words_of(row.required);
  std::set<std::string> allowed = words_of(row.optional);
  allowed.insert(required.begin(), required.end());
  allowed.insert("STATE");
  for (const std::string& bit : required) {
    if (mask.count(bit) == 0)
      findings.push_back({"mask", AttributeVerdict::kWrong,
                          fmt::format("IBV_QP_{} is missing: {} to {} needs it", bit, row.from, row.to)});
  }
  for (const std::string& bit : mask) {
    if (allowed.count(bit) == 0)
      findings.push_back({"mask", AttributeVerdict::kWrong,
                          fmt::format("IBV_QP_{} is not taken from {} to {} ({})", bit, row.from, row.to,
                                      row.type == "*" ? "UC, RC" : row.type)});
  }
  if (mask.count("STATE") == 0 && row.from != row.to)
    findings.push_back(
        {"mask", AttributeVerdict::kWrong, "IBV_QP_STATE is missing: nothing says that the state is to change"});
  if (findings.empty())
    findings.push_back({"mask", AttributeVerdict::kFits, "all that this transition needs, and nothing else"});
  return findings;
}

}  // namespace

std::vector<AttributeFinding> check_transition(const Attributes& attributes) {
  const std::string to = value_of(attributes, "to", "");
  const std::string from = value_of(attributes, "from", "");
  const std::string type = value_of(attributes, "type", "RC");
  if (to.empty()) return {};
  for (const auto& [name, state] : {std::pair{"to", to}, std::pair{"from", from}}) {
    if (!state.empty() && std::find(kStates.begin(), kStates.end(), state) == kStates.end()) {
      return {{name, AttributeVerdict::kWrong,
               fmt::format("there is no state {}; there are {}", state, fmt::join(kStates, ", "))}};
    }
  }
  if (type != "UD" && type != "UC" && type != "RC")
    return {{"type", AttributeVerdict::kUnknown, "the table has UD, UC and RC"}};
  if (from.empty())
    return {
        {"to", AttributeVerdict::kUnknown, fmt::format("to {} from: {}; say from=STATE", to, from_where(type, to))}};
  if (to == "RESET" || to == "ERR") {
    const bool valid = to == "RESET" || from != "RESET";
    return {{"to", valid ? AttributeVerdict::kFits : AttributeVerdict::kWrong,
             valid ? "from any state, without attributes" : "not from RESET"}};
  }
  if (to == "SQD" && from == "RTS")
    return {{"to", AttributeVerdict::kFits, "only EN_SQD_ASYNC_NOTIFY may stand beside it"}};
  const Transition* row = find_transition(type, from, to);
  if (row == nullptr)
    return {{"to", AttributeVerdict::kWrong,
             fmt::format("a {} queue pair does not go from {} to {}; to {} from: {}", type, from, to, to,
                         from_where(type, to))}};
  if (attributes.count("mask") == 0)
    return {{"to", AttributeVerdict::kFits,
             fmt::format("{} to {} needs: STATE {}; may have: {}", from, to, row->required, row->optional)}};
  return check_mask(*row, words_of(attributes.at("mask")));
}

}  // namespace verbena::rdma
