// The LIDs of a port, claimed in this network namespace, so that no other port there has them (host/lid_name.h).
//
// Thread-safety: none; lives under the runtime's control lock.
// Ownership:     the claim ends with this object.
#pragma once

#include <cstdint>
#include <memory>

#include "device/infiniband_port.h"
#include "transport/fd.h"
#include "verbena/result.h"

namespace verbena::device {

class LidClaim {
 public:
  // kBusy where another port has one of the LIDs; the words name its process. Of two that come at the same moment both
  // may be refused.
  static Result<std::unique_ptr<LidClaim>> take(const InfinibandPort& port);

 private:
  explicit LidClaim(transport::Fd socket) noexcept : socket_(std::move(socket)) {}

  transport::Fd socket_;
};

}  // namespace verbena::device
