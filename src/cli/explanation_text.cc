#include "cli/explanation_text.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/doctor_report.h"

namespace verbena::cli {
namespace {

using Words = std::vector<std::string>;

std::string errno_name(int error) {
  const char* name = strerrorname_np(error);
  return name == nullptr ? std::to_string(error) : std::string(name);
}

template <class Table>
std::string names_of(const Table& table) {
  std::string text;
  for (const auto& row : table) text += (text.empty() ? "" : ", ") + std::string(row.name);
  return text;
}

tl::unexpected<Error> refuse(std::string message) {
  return failure(ErrorCode::kInvalidArgument, std::move(message));
}

// "vendor 0x81", "vendor_err=129".
Result<std::optional<unsigned long>> parse_vendor(const Words& words, std::size_t at) {
  if (at == words.size()) return std::optional<unsigned long>();
  std::string value = words[at];
  const std::size_t equals = value.find('=');
  const std::string name = value.substr(0, equals);
  const bool pair = equals == std::string::npos && at + 2 == words.size();
  if ((name != "vendor" && name != "vendor_err") || (equals == std::string::npos && !pair)) {
    return refuse(fmt::format("\"{}\" is not understood behind a completion status; known is: vendor CODE", words[at]));
  }
  value = pair ? words[at + 1] : value.substr(equals + 1);
  const bool hex = value.substr(0, 2) == "0x";
  const std::string_view digits = std::string_view(value).substr(hex ? 2 : 0);
  unsigned long code = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, hex ? 16 : 10);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    return refuse(fmt::format("vendor {}: not a number (decimal, or 0x...)", value));
  }
  if (!pair && at + 1 != words.size()) return refuse(fmt::format("\"{}\" is one word too many", words[at + 1]));
  return std::optional(code);
}

Result<ErrorQuestion> parse_status(const Words& words, std::size_t at) {
  if (at >= words.size()) return refuse("which completion status? known are: " + names_of(rdma::status_explanations()));
  ErrorQuestion question{.kind = ErrorQuestion::Kind::kStatus, .status = rdma::find_status(words[at])};
  if (question.status == nullptr) {
    return refuse(fmt::format("there is no completion status {}; known are 0 to {}, or: {}", words[at],
                              rdma::status_explanations().size() - 1, names_of(rdma::status_explanations())));
  }
  const auto vendor = parse_vendor(words, at + 1);
  if (!vendor) return tl::make_unexpected(vendor.error());
  question.vendor_error = *vendor;
  return question;
}

Result<ErrorQuestion> parse_event(const Words& words, std::size_t at) {
  if (at >= words.size()) return refuse("which event? known are: " + names_of(rdma::event_explanations()));
  ErrorQuestion question{.kind = ErrorQuestion::Kind::kEvent, .event = rdma::find_event(words[at])};
  if (question.event == nullptr) {
    return refuse(fmt::format("there is no event {}; known are: {}", words[at], names_of(rdma::event_explanations())));
  }
  if (at + 1 != words.size()) return refuse(fmt::format("\"{}\" is one word too many", words[at + 1]));
  return question;
}

Result<ErrorQuestion> parse_call(const Words& words, std::string_view call) {
  ErrorQuestion question{.kind = ErrorQuestion::Kind::kCallOnly, .call = std::string(call)};
  if (words.size() == 1) return question;
  question.kind = ErrorQuestion::Kind::kCall;
  const auto error = rdma::find_errno(words[1]);
  if (!error) {
    return refuse(
        fmt::format("{} is no errno: a name such as EINVAL, or a number such as 22 (errno, or what the call "
                    "returned)",
                    words[1]));
  }
  question.error = *error;
  auto attributes = rdma::parse_attributes(Words(words.begin() + 2, words.end()));
  if (!attributes) return tl::make_unexpected(attributes.error());
  question.attributes = std::move(*attributes);
  return question;
}

bool starts_with(std::string_view word, std::string_view prefix) {
  return word.substr(0, prefix.size()) == prefix;
}

const char* verdict_word(rdma::AttributeVerdict verdict) {
  switch (verdict) {
    case rdma::AttributeVerdict::kFits:
      return "fits";
    case rdma::AttributeVerdict::kWrong:
      return "WRONG";
    case rdma::AttributeVerdict::kSuspicious:
      return "suspicious";
    case rdma::AttributeVerdict::kUnknown:
      return "not known";
  }
  return "";
}

// What all kinds that explain one thing have in common.
struct Answer {
  std::string what{};
  std::string meaning{};
  std::vector<rdma::LikelyCause> causes{};
  std::vector<rdma::AttributeFinding> attributes{};
};

std::string vendor_in_words(const ErrorQuestion& question) {
  if (!question.vendor_error) return {};
  const std::string_view known = rdma::explain_vendor_error(question.status->status, *question.vendor_error);
  return fmt::format(" Vendor code {:#x}: {}.", *question.vendor_error,
                     known.empty() ? "the provider's own; the table here does not have it" : known);
}

Answer answer_of(const ErrorQuestion& question, const rdma::DeviceFacts* device) {
  switch (question.kind) {
    case ErrorQuestion::Kind::kStatus:
      return {.what = fmt::format("{} ({})", question.status->name, static_cast<int>(question.status->status)),
              .meaning = std::string(question.status->meaning) + vendor_in_words(question),
              .causes = question.status->causes};
    case ErrorQuestion::Kind::kEvent:
      return {.what = fmt::format("{} ({})", question.event->name, static_cast<int>(question.event->type)),
              .meaning = std::string(question.event->meaning),
              .causes = question.event->causes};
    case ErrorQuestion::Kind::kCall:
    case ErrorQuestion::Kind::kCallOnly:
    case ErrorQuestion::Kind::kErrno:
      break;
  }
  const rdma::CallExplanation* row = rdma::find_explanation(question.call, question.error);
  const rdma::CallExplanation general = rdma::general_explanation(question.call, question.error);
  const rdma::CallExplanation& taken = row != nullptr ? *row : general;
  return {.what = fmt::format("{}: {} ({})", question.call, errno_name(question.error), question.error),
          .meaning = std::string(taken.meaning),
          .causes = taken.causes,
          .attributes = rdma::check_attributes(question.attributes, device)};
}

bool lists_rows(const ErrorQuestion& question) {
  return question.kind == ErrorQuestion::Kind::kCallOnly || question.kind == ErrorQuestion::Kind::kErrno;
}

std::vector<const rdma::CallExplanation*> rows_of(const ErrorQuestion& question) {
  std::vector<const rdma::CallExplanation*> rows;
  for (const auto& row : rdma::call_explanations()) {
    const bool fits =
        question.kind == ErrorQuestion::Kind::kErrno ? row.error == question.error : row.call == question.call;
    if (fits) rows.push_back(&row);
  }
  return rows;
}

std::string render_rows(const ErrorQuestion& question, std::size_t width) {
  const bool by_errno = question.kind == ErrorQuestion::Kind::kErrno;
  std::string text;
  if (by_errno) {
    text = fmt::format("{} ({}): {}\n\n", errno_name(question.error), question.error,
                       rdma::general_explanation("", question.error).meaning);
  }
  for (const auto* row : rows_of(question)) {
    text += fmt::format("  {:<30}{}\n", by_errno ? std::string(row->call) : errno_name(row->error),
                        wrapped(std::string(row->meaning), 32, width));
  }
  return text + fmt::format("\nFor the causes: verbena doctor explain {}\n",
                            by_errno ? "CALL " + errno_name(question.error) : question.call + " ERRNO");
}

void append_labelled(std::string& text, std::string_view label, std::string_view words, std::size_t width) {
  if (words.empty()) return;
  text += fmt::format("     {:<13}{}\n", label, wrapped(std::string(words), 18, width));
}

}  // namespace

Result<ErrorQuestion> parse_question(const Words& words) {
  if (words.empty()) return refuse("explain what? a call and its errno, wc and a status, or an event");
  const std::string& first = words.front();
  if (first == "wc" || first == "status") return parse_status(words, 1);
  if (starts_with(first, "IBV_WC_")) return parse_status(words, 0);
  if (first == "event" || first == "async") return parse_event(words, 1);
  if (starts_with(first, "IBV_EVENT_")) return parse_event(words, 0);
  if (const auto call = rdma::find_call(first)) return parse_call(words, *call);
  const auto error = rdma::find_errno(first);
  if (error && words.size() == 1) return ErrorQuestion{.kind = ErrorQuestion::Kind::kErrno, .error = *error};
  return refuse(fmt::format("\"{}\" is not known; known are: wc STATUS, event NAME, an errno, and the calls {}", first,
                            fmt::join(rdma::explained_calls(), ", ")));
}

std::string render_explanation(const ErrorQuestion& question, const rdma::DeviceFacts* device, std::size_t width) {
  if (lists_rows(question)) return render_rows(question, width);
  const Answer answer = answer_of(question, device);
  std::string text = fmt::format("{}\n  {}\n", answer.what, wrapped(answer.meaning, 2, width));
  if (!answer.attributes.empty()) {
    text += fmt::format("\nWhat you gave{}:\n", device == nullptr ? "" : ", compared with " + device->name);
    for (const auto& finding : answer.attributes) {
      text += fmt::format("  {:<14}{:<11} {}\n", finding.attribute, verdict_word(finding.verdict),
                          wrapped(finding.text, 28, width));
    }
  }
  text += "\nLikely causes, the likeliest first:\n";
  for (std::size_t i = 0; i < answer.causes.size(); ++i) {
    text += fmt::format(
        "{:>3}. {}\n", i + 1,
        wrapped(std::string(answer.causes[i].what.empty() ? "as it says" : answer.causes[i].what), 5, width));
    append_labelled(text, "to find out:", answer.causes[i].find_out, width);
    append_labelled(text, "to do:", answer.causes[i].remedy, width);
  }
  return text;
}

nlohmann::json explanation_to_json(const ErrorQuestion& question, const rdma::DeviceFacts* device) {
  if (lists_rows(question)) {
    auto rows = nlohmann::json::array();
    for (const auto* row : rows_of(question)) {
      rows.push_back({{"call", row->call}, {"errno", errno_name(row->error)}, {"meaning", row->meaning}});
    }
    return {{"what", question.call.empty() ? errno_name(question.error) : question.call}, {"rows", std::move(rows)}};
  }
  const Answer answer = answer_of(question, device);
  auto causes = nlohmann::json::array();
  for (const auto& cause : answer.causes) {
    causes.push_back({{"cause", cause.what}, {"find_out", cause.find_out}, {"remedy", cause.remedy}});
  }
  auto attributes = nlohmann::json::array();
  for (const auto& finding : answer.attributes) {
    attributes.push_back(
        {{"name", finding.attribute}, {"verdict", verdict_word(finding.verdict)}, {"text", finding.text}});
  }
  return {{"what", answer.what},
          {"meaning", answer.meaning},
          {"causes", std::move(causes)},
          {"attributes", std::move(attributes)}};
}

}  // namespace verbena::cli
