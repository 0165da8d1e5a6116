// From words on the command line to an explanation: what is meant, what it means, which attribute is wrong. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "rdma/attribute_check.h"
#include "rdma/doctor_facts.h"
#include "rdma/error_explanation.h"
#include "verbena/result.h"

namespace verbena::cli {

// What the words ask for.
struct ErrorQuestion {
  enum class Kind { kCall, kCallOnly, kErrno, kStatus, kEvent };

  Kind kind = Kind::kCall;
  std::string call{};
  int error = 0;
  const rdma::StatusExplanation* status = nullptr;
  std::optional<unsigned long> vendor_error{};
  const rdma::EventExplanation* event = nullptr;
  rdma::Attributes attributes{};
};

// "ibv_create_ah EINVAL gid_index=3", "ibv_reg_mr", "EINVAL", "wc 12 vendor 0x81", "IBV_WC_RETRY_EXC_ERR",
// "event GID_CHANGE", "IBV_EVENT_PORT_ERR".
// Errors: kInvalidArgument says which word is not known, and lists those that are.
Result<ErrorQuestion> parse_question(const std::vector<std::string>& words);

// Text for people, at most `width` columns where words allow it. `device` (may be null) is what attributes are compared
// with.
std::string render_explanation(const ErrorQuestion& question, const rdma::DeviceFacts* device, std::size_t width);

// {"what", "meaning", "causes": [{"cause", "find_out", "remedy"}], "attributes": [{"name", "verdict", "text"}]}; for a
// call without errno or an errno without call {"what", "rows": [{"call", "errno", "meaning"}]}.
nlohmann::json explanation_to_json(const ErrorQuestion& question, const rdma::DeviceFacts* device);

}  // namespace verbena::cli
