// What a requester knows of packets behind one that is missing, and when it sends the missing ones again.
//
//   unacked ... reached          end of evidence        highest sent
//   ──┴───────────┴─────────────────────┴─────────────────────┴──>  PSNs
//     carried out;│ requests: told which│ nothing is known
//     answers to  │ of them have arrived│
//     reads may be│                     │
//     missing     │                     │
//
// A packet that is missing may only have been overtaken. So it is sent again no sooner than a while after something
// behind it was seen, and a second time when as much time has passed as the first one took to be answered, twice.
//
// Thread-safety: none; the send side of a queue pair owns it.
// Ownership:     keeps answers that came early (early_packets.h).
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>

#include "base/instant.h"
#include "base/psn.h"
#include "engine/early_packets.h"
#include "wire/selective_eth.h"

namespace verbena::engine {

class SelectiveRepeat {
 public:
  static constexpr std::uint32_t kReach = EarlyPackets::kReach;
  // How much later than what was sent after it a packet may arrive and not be sent again.
  static constexpr Duration kPatience{50'000};

  // `ack_timeout` as the connection has it; 0: none.
  SelectiveRepeat(Psn unacked, Duration ack_timeout) noexcept;

  EarlyPackets& early() noexcept { return early_; }
  // Every request before it was carried out.
  Psn reached() const noexcept { return reached_; }

  // The other end has carried out all before `end`.
  void on_reached(Psn end, Instant now) noexcept;
  // It has `psn + 1 + i` for each i in `arrived`; of these, what was sent is before `highest`.
  void on_told(Psn psn, const wire::SelectiveEth& arrived, Psn highest, Instant now) noexcept;
  // Everything before `unacked` is answered.
  void on_progress(Psn unacked, Instant now) noexcept;

  // When on_time() should be called.
  std::optional<Instant> next_timeout() const noexcept;
  // True where what is missing is to be sent again now: a pass over it begins.
  bool on_time(Instant now) noexcept;
  // A pass over all that is missing before `end`, without evidence.
  void begin_pass(Psn end) noexcept;
  void end_pass(Instant now) noexcept;
  // Everything will be sent again in another way.
  void give_up() noexcept;

  // A pass goes over the PSNs in [pass_at(), pass_end()).
  bool in_pass() const noexcept { return in_pass_; }
  Psn pass_at() const noexcept { return pass_at_; }
  Psn pass_end() const noexcept { return pass_end_; }
  // Requires: psn in the pass.
  bool is_answer_missing(Psn psn) const noexcept { return !early_.has(psn) && !repeated_[place_of(psn)]; }
  bool is_request_missing(Psn psn) const noexcept {
    return (psn == base_ || !arrived_[place_of(psn)]) && !repeated_[place_of(psn)];
  }
  // [from, end) of it was sent again; or was not, after all.
  void on_repeated(Psn from, Psn end) noexcept;
  void on_rewound(Psn from, Psn end) noexcept;

 private:
  static constexpr std::size_t place_of(Psn psn) noexcept { return psn.value() % kReach; }
  Psn evidence() const noexcept { return told_.distance_from(reached_) > 0 ? told_ : reached_; }
  bool is_waiting() const noexcept { return evidence().distance_from(base_) > 0; }
  void wait(Instant now) noexcept;

  EarlyPackets early_;
  std::bitset<kReach> arrived_;   // requests at the other end, of those from reached_ on
  std::bitset<kReach> repeated_;  // sent again, and not long ago
  Psn base_;                      // the oldest that is not answered
  Psn reached_;
  Psn told_;  // one past the last of arrived_

  Duration patience_;
  std::optional<Instant> overdue_at_;  // when what is missing before overdue_end_ is sent again
  Psn overdue_end_;
  std::optional<Instant> again_at_;  // when what was sent again is sent once more
  Duration again_after_;
  std::optional<Instant> repeated_at_;  // when repeated_psn_ was sent again, and not answered since
  Psn repeated_psn_;

  bool in_pass_ = false;
  bool pass_repeats_ = false;  // something was sent in it
  Psn pass_at_;
  Psn pass_end_;
};

}  // namespace verbena::engine
