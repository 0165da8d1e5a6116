#include "rdma/error_explanation.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>

#include "rdma/verbs_error.h"

namespace verbena::rdma {
namespace {

constexpr int kLastErrno = 133;

// Whole word as a number, "0x" allowed.
std::optional<long> number_in(std::string_view word) {
  const bool negative = !word.empty() && word.front() == '-';
  if (negative) word.remove_prefix(1);
  const bool hex = word.substr(0, 2) == "0x";
  if (hex) word.remove_prefix(2);
  long value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, hex ? 16 : 10);
  if (word.empty() || error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return negative ? -value : value;
}

std::string upper(std::string_view word) {
  std::string text(word);
  std::transform(text.begin(), text.end(), text.begin(), [](char letter) {
    return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
  });
  return text;
}

template <class Table, class Code>
auto find_row(const Table& table, std::string_view word, std::string_view prefix, Code code) -> decltype(table.data()) {
  const auto number = number_in(word);
  const std::string name = upper(word);
  for (const auto& row : table) {
    if (number && code(row) == *number) return &row;
    if (row.name == name || row.name == std::string(prefix) + name) return &row;
  }
  return nullptr;
}

}  // namespace

const std::vector<CallExplanation>& call_explanations() {
  static const std::vector<CallExplanation> table = [] {
    std::vector<CallExplanation> all;
    for (auto& part : {device_call_explanations(), address_call_explanations(), memory_call_explanations(),
                       queue_call_explanations(), xrc_call_explanations()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return table;
}

std::vector<std::string_view> explained_calls() {
  std::vector<std::string_view> calls;
  for (const CallExplanation& row : call_explanations()) {
    if (std::find(calls.begin(), calls.end(), row.call) == calls.end()) calls.push_back(row.call);
  }
  return calls;
}

std::optional<std::string_view> find_call(std::string_view word) {
  if (word.size() > 2 && word.substr(word.size() - 2) == "()") word.remove_suffix(2);
  for (const std::string_view call : explained_calls()) {
    if (call == word || (call.substr(0, 4) == "ibv_" && call.substr(4) == word)) return call;
  }
  return std::nullopt;
}

const CallExplanation* find_explanation(std::string_view call, int error) {
  for (const CallExplanation& row : call_explanations()) {
    if (row.call == call && row.error == error) return &row;
  }
  return nullptr;
}

CallExplanation general_explanation(std::string_view call, int error) {
  CallExplanation general{call, error, "", {}};
  switch (code_of(error)) {
    case ErrorCode::kInvalidArgument:
      general.meaning = "The device or library refuses one of the values it was given; it does not say which.";
      general.causes = {{"an attribute out of range, or two that do not go together",
                         "compare each with ibv_devinfo -v",
                         "start from values that a small program (ibv_rc_pingpong) uses, and change one at a time"}};
      break;
    case ErrorCode::kNotFound:
      general.meaning = "What was named is not there, or is no longer.";
      general.causes = {{"the device, the GID or the interface has gone", "ibv_devinfo; ip link; verbena gids",
                         "open it anew, and read the tables after each event"}};
      break;
    case ErrorCode::kUnreachable:
      general.meaning = "The peer cannot be reached from here.";
      general.causes = {{"no route, or a neighbour that does not answer",
                         "ip route get PEER; ip neigh; verbena doctor PEER", "mend the route or the link"}};
      break;
    case ErrorCode::kExhausted:
      general.meaning = "A limit of the device, the process or the system is reached.";
      general.causes = {{"too many objects, or too little memory that may be locked",
                         "ulimit -a; ibv_devinfo -v; rdma resource", "close what is not needed, or raise the limit"}};
      break;
    case ErrorCode::kBusy:
      general.meaning = "Something that was made from the object is still there.";
      general.causes = {{"queue pairs, address handles, memory regions or events that were not given back",
                         "rdma resource show", "destroy them first, in the opposite order of their creation"}};
      break;
    case ErrorCode::kPermission:
      general.meaning = "This user, or this container, may not.";
      general.causes = {{"the mode of /dev/infiniband, or a missing capability", "verbena doctor", "allow it there"}};
      break;
    case ErrorCode::kUnsupported:
      general.meaning = "The device, its driver or this kernel does not offer it.";
      general.causes = {
          {"an optional operation", "ibv_devinfo -v; ibv_query_device_ex", "do without, or use another device"}};
      break;
    default:
      general.meaning = "The kernel or the provider failed; the table here has no row for this pair.";
      general.causes = {{"a driver that has been removed or reset, or an error of the driver", "dmesg",
                         "close the device and open it again"}};
  }
  return general;
}

const StatusExplanation* find_status(std::string_view word) {
  return find_row(status_explanations(), word, "IBV_WC_",
                  [](const StatusExplanation& row) { return static_cast<long>(row.status); });
}

const EventExplanation* find_event(std::string_view word) {
  return find_row(event_explanations(), word, "IBV_EVENT_",
                  [](const EventExplanation& row) { return static_cast<long>(row.type); });
}

std::optional<int> find_errno(std::string_view word) {
  if (const auto number = number_in(word)) {
    const long value = *number < 0 ? -*number : *number;
    if (value < 1 || value > kLastErrno || strerrorname_np(static_cast<int>(value)) == nullptr) return std::nullopt;
    return static_cast<int>(value);
  }
  const std::string name = upper(word);
  if (name == "ENOTSUP") return EOPNOTSUPP;
  if (name == "EWOULDBLOCK") return EAGAIN;
  for (int error = 1; error <= kLastErrno; ++error) {
    const char* known = strerrorname_np(error);
    if (known != nullptr && name == known) return error;
  }
  return std::nullopt;
}

std::string_view explain_vendor_error(ibv_wc_status status, unsigned long vendor_error) {
  struct Row {
    ibv_wc_status status;
    unsigned long code;
    std::string_view text;
  };
  static constexpr std::array<Row, 7> kRows{{
      {IBV_WC_RETRY_EXC_ERR, 0x81, "on ConnectX: no acknowledgement came in all attempts; the far end never answered"},
      {IBV_WC_RNR_RETRY_EXC_ERR, 0x87, "on ConnectX: the far end answered \"receiver not ready\" each time"},
      {IBV_WC_REM_ACCESS_ERR, 0x88, "on ConnectX: the far end refused R_Key, address range or right"},
      {IBV_WC_REM_INV_REQ_ERR, 0x89, "on ConnectX: the far end refused the request as such"},
      {IBV_WC_REM_OP_ERR, 0x8a, "on ConnectX: the far end could not carry it out"},
      {IBV_WC_WR_FLUSH_ERR, 0xf5, "on ConnectX: flushed because the queue pair is in the error state"},
      {IBV_WC_WR_FLUSH_ERR, 0xf9, "on ConnectX: flushed because the queue pair is in the error state"},
  }};
  for (const Row& row : kRows) {
    if (row.status == status && row.code == vendor_error) return row.text;
  }
  return {};
}

}  // namespace verbena::rdma
