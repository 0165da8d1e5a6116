// What an error of the verbs means: one table (call, errno) -> causes, one of completion statuses, one of asynchronous
// events. Each cause says how to find out and what to do, the likeliest first. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <infiniband/verbs.h>

#include "verbena/result.h"

namespace verbena::rdma {

struct LikelyCause {
  std::string_view what;
  std::string_view find_out;  // empty: nothing beyond the text
  std::string_view remedy;
};

// One row of the table of calls.
struct CallExplanation {
  std::string_view call;
  int error = 0;
  std::string_view meaning;
  std::vector<LikelyCause> causes;
};

struct StatusExplanation {
  ibv_wc_status status;
  std::string_view name;  // "IBV_WC_SUCCESS"
  std::string_view meaning;
  std::vector<LikelyCause> causes;
};

struct EventExplanation {
  ibv_event_type type;
  std::string_view name;  // "IBV_EVENT_CQ_ERR"
  std::string_view meaning;
  std::vector<LikelyCause> causes;
};

// The tables, in the order in which a program meets them.
const std::vector<CallExplanation>& call_explanations();
const std::vector<StatusExplanation>& status_explanations();
const std::vector<EventExplanation>& event_explanations();

// The parts of the first one.
std::vector<CallExplanation> device_call_explanations();
std::vector<CallExplanation> address_call_explanations();
std::vector<CallExplanation> memory_call_explanations();
std::vector<CallExplanation> queue_call_explanations();
std::vector<CallExplanation> xrc_call_explanations();

// Each call of the table once.
std::vector<std::string_view> explained_calls();
// "ibv_create_ah" for that or "create_ah"; nothing for a call that is not in the table.
std::optional<std::string_view> find_call(std::string_view word);
// The row; nullptr where the table has none for this pair.
const CallExplanation* find_explanation(std::string_view call, int error);

// What an errno says, whatever the call: used where the table has no row. Never empty.
CallExplanation general_explanation(std::string_view call, int error);

// By name, with or without its prefix, or by number. Nothing for what is none.
const StatusExplanation* find_status(std::string_view word);
const EventExplanation* find_event(std::string_view word);
// "EINVAL", "einval", "22", "-22". Nothing for what is no errno.
std::optional<int> find_errno(std::string_view word);

// What a provider's vendor_err is known to go with; empty where it is not known here.
std::string_view explain_vendor_error(ibv_wc_status status, unsigned long vendor_error);

}  // namespace verbena::rdma
