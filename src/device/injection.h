// Faults on purpose, by VERBENA_INJECT: calls that are slow or fail, events that get lost. So that what hardware seldom
// does can be rehearsed.
//
//   create_ah.delay=1ms..3s     each call takes that long (one value, or drawn from a range)
//   create_ah.fail=ENOMEM       it fails with this errno ...
//   create_ah.after=100         ... but not the first 100 times
//   create_ah.times=10          ... and only 10 times then
//   create_ah.chance=5%         ... and of those only some
//   events.lose=50%             asynchronous events that do not reach the program
//   seed=7                      of everything that is drawn
//
// The calls are those of kObjectRows. What is drawn depends on the seed and on the number of the call alone.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <string_view>

#include "base/instant.h"
#include "device/object_kind.h"
#include "verbena/result.h"

namespace verbena::device {

struct CallFault {
  Duration shortest{0};
  Duration longest{0};
  int error = 0;  // 0: none
  std::uint64_t after = 0;
  std::uint64_t times = std::numeric_limits<std::uint64_t>::max();
  double chance = 1;
};

struct InjectionSpec {
  std::array<CallFault, kObjectKinds> calls{};
  double lose_events = 0;
  std::uint64_t seed = 1;
};

// kInvalidArgument names the part that is wrong and what it may be. "" injects nothing.
Result<InjectionSpec> parse_injection(std::string_view text);

// Thread-safety: any thread.
class Injection {
 public:
  struct Verdict {
    Duration delay{0};
    int error = 0;
  };

  explicit Injection(const InjectionSpec& spec) noexcept : spec_(spec) {}

  // Of the next call that makes such an object.
  Verdict on_call(ObjectKind kind) noexcept;
  // Whether the next event is lost.
  bool loses_event() noexcept;

 private:
  const InjectionSpec spec_;
  std::array<std::atomic<std::uint64_t>, kObjectKinds> calls_{};  // relaxed: each only counts
  std::atomic<std::uint64_t> events_{0};
};

}  // namespace verbena::device
