// What the user asks for by VERBENA_IMPAIR:
// "loss=5%,dup=5%,reorder=5%,delay=1ms,jitter=200us,corrupt=0.1%,mark=1%,seed=7".
#pragma once

#include <cstdint>
#include <string_view>

#include "base/instant.h"
#include "verbena/result.h"

namespace verbena::transport {

struct ImpairSpec {
  // Probabilities, 0 to 1, each drawn for each datagram.
  double loss = 0;
  double duplicate = 0;
  double reorder = 0;  // held back until some later datagrams have passed, or for a moment
  double mark = 0;     // of what is ECN-capable, as a congested network does (RFC 3168)
  double corrupt = 0;  // one bit flipped; only datagrams with an ICRC, so that the receiver can tell
  Duration delay{0};
  Duration jitter{0};  // added to the delay, uniform in [0, jitter]
  std::uint64_t seed = 1;

  bool is_idle() const noexcept {
    return loss == 0 && duplicate == 0 && reorder == 0 && corrupt == 0 && mark == 0 && delay.count() == 0 &&
           jitter.count() == 0;
  }
};

// kInvalidArgument names the part that is wrong and what it may be. "" is no impairment.
Result<ImpairSpec> parse_impair_spec(std::string_view text);

}  // namespace verbena::transport
