// A message that is sent again until it is answered: soon at first, then ever more rarely, up to the time that the peer
// was told to expect.
//
// Thread-safety: a plain value.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/instant.h"
#include "wire/mad.h"

namespace verbena::cm {

// What the messages say on the wire, as 4.096 us << n, and how often they are sent again: the values of Linux.
inline constexpr std::uint8_t kResponseTimeout = 20;
inline constexpr std::uint8_t kServiceTimeout = 24;
inline constexpr std::uint8_t kMostRetries = 15;

// How long an answer is kept for a question that comes again: longer than between two of those.
inline constexpr Duration kAnswerKept = std::chrono::seconds(10);

constexpr Duration decoded_timeout(unsigned exponent) noexcept {
  return Duration(std::int64_t{4096} << std::min(exponent, 31U));
}

class Retransmission {
 public:
  void start(const wire::Mad& mad, Instant now, unsigned retries = kMostRetries) noexcept {
    mad_ = mad;
    left_ = retries;
    interval_ = kFirst;
    due_ = now + interval_;
    patience_until_ = {};
    extensions_left_ = kMostRetries;
    running_ = true;
  }
  void stop() noexcept { running_ = false; }

  // The peer is at work on it, and said how long it may take: until then it is not asked again. It may say so again,
  // though not for ever.
  void extend(Instant now, Duration service_time) noexcept {
    if (extensions_left_ == 0) return;
    --extensions_left_;
    patience_until_ = now + service_time;
    due_ = std::max(due_, patience_until_);
  }

  bool running() const noexcept { return running_; }
  Instant due() const noexcept { return due_; }
  const wire::Mad& mad() const noexcept { return mad_; }

  // Requires: running(), now >= due(). False where it was sent often enough.
  bool again(Instant now) noexcept {
    if (now >= patience_until_) {
      if (left_ == 0) return false;
      --left_;
    }
    interval_ = std::min<Duration>(interval_ * 2, decoded_timeout(kResponseTimeout));
    due_ = now + interval_;
    return true;
  }

 private:
  static constexpr Duration kFirst = std::chrono::milliseconds(200);

  wire::Mad mad_{};
  unsigned left_ = 0;
  unsigned extensions_left_ = 0;
  Duration interval_{};
  Instant due_;
  Instant patience_until_;
  bool running_ = false;
};

}  // namespace verbena::cm
