#include "transport/impair/impair.h"

#include <mutex>
#include <utility>

#include "transport/impair/held_datagrams.h"
#include "transport/impair/impair_plan.h"

namespace verbena::transport {
namespace {

// How long a reordered datagram waits for others to overtake it.
constexpr Duration kReorderHold = std::chrono::milliseconds(1);
// When one that is due met a full queue.
constexpr Duration kRetry = std::chrono::microseconds(100);
// The ICRC does not cover the fifth byte of a RoCE packet, so a flip there or in front of it might pass unseen.
constexpr std::size_t kFirstCoveredByte = 5;

bool can_be_corrupted(const Outgoing& datagram) noexcept {
  return datagram.has_icrc && datagram.size > kFirstCoveredByte;
}

bool is_ecn_capable(const Envelope& envelope) noexcept {
  constexpr std::uint8_t kEcnBits = 0x3;
  return !envelope.is_infiniband() && (envelope.traffic_class & kEcnBits) != 0;  // theirs is not the carrier's
}

void flip_bit(std::vector<std::byte>& bytes, std::uint64_t choice) noexcept {
  const auto bit = choice % ((bytes.size() - kFirstCoveredByte) * 8);
  bytes[kFirstCoveredByte + bit / 8] ^= std::byte{1} << (bit % 8);
}

}  // namespace

class Impair::Impl {
 public:
  Impl(const ImpairSpec& spec, Sender& next, DropCounter& drops, std::size_t held_limit)
      : next_(next), drops_(drops), plan_(spec), held_(held_limit) {}

  bool take(const Outgoing& datagram, Instant now);
  bool pass(const Outgoing& datagram, const ImpairDecision& decision, Instant now);
  void hold(HeldDatagram datagram, const ImpairDecision& decision, Instant now);
  bool forward(const Outgoing& datagram, Instant now) noexcept { return next_.send({&datagram, 1}, now).taken == 1; }
  void release_due(Instant now);

  Sender& next_;
  DropCounter& drops_;
  mutable std::mutex mutex_;  // guards all below
  ImpairPlan plan_;
  HeldDatagrams held_;
  ImpairCounts counts_;
  std::uint64_t passed_ = 0;                 // datagrams that went on at once; they overtake those held
  std::optional<ImpairDecision> undecided_;  // drawn for a datagram that then met a full queue
};

// False where the next sender is full; the same decision then waits for the same datagram.
bool Impair::Impl::take(const Outgoing& datagram, Instant now) {
  const auto decision = undecided_ ? *undecided_ : plan_.next();
  undecided_.reset();
  if (!decision.lose && !pass(datagram, decision, now)) {
    undecided_ = decision;
    return false;
  }
  ++counts_.seen;
  if (decision.lose) {
    ++counts_.lost;
    drops_.count(Drop::kImpairLoss);
  }
  return true;
}

bool Impair::Impl::pass(const Outgoing& datagram, const ImpairDecision& decision, Instant now) {
  const bool corrupt = decision.corrupt && can_be_corrupted(datagram);
  const bool later = decision.reorder || decision.delay.count() != 0;
  const bool mark = decision.mark && is_ecn_capable(*datagram.envelope);
  if (!corrupt && !later && !mark) {
    if (!forward(datagram, now)) return false;
    if (decision.duplicate && forward(datagram, now)) ++counts_.duplicated;
    ++passed_;
    return true;
  }
  HeldDatagram copy(datagram);
  if (corrupt) flip_bit(copy.bytes(), decision.corrupt_at);
  if (mark) copy.mark();
  if (!later && !forward(copy.outgoing(), now)) return false;
  if (corrupt) ++counts_.corrupted;
  if (mark) ++counts_.marked;
  if (later) {
    if (decision.duplicate) {
      ++counts_.duplicated;
      hold(copy, decision, now);
    }
    hold(std::move(copy), decision, now);
    ++(decision.reorder ? counts_.reordered : counts_.delayed);
    return true;
  }
  if (decision.duplicate && forward(copy.outgoing(), now)) ++counts_.duplicated;
  ++passed_;
  return true;
}

void Impair::Impl::hold(HeldDatagram datagram, const ImpairDecision& decision, Instant now) {
  const Instant due = now + decision.delay + (decision.reorder ? kReorderHold : Duration(0));
  const bool by_others = decision.reorder && decision.delay.count() == 0;
  const auto overtaken_at = by_others ? passed_ + decision.overtakers : HeldDatagrams::kNeverOvertaken;
  if (held_.hold(std::move(datagram), due, overtaken_at)) return;
  ++counts_.overflowed;
  drops_.count(Drop::kImpairOverflow);
}

void Impair::Impl::release_due(Instant now) {
  while (auto* datagram = held_.find_due(now, passed_)) {
    if (!forward(datagram->outgoing(), now)) {
      held_.put_off_due(now + kRetry);
      return;
    }
    held_.pop_due();
  }
}

Impair::Impair(const ImpairSpec& spec, Sender& next, DropCounter& drops, std::size_t held_limit)
    : impl_(std::make_unique<Impl>(spec, next, drops, held_limit)) {}

Impair::~Impair() = default;

SendResult Impair::send(std::span<const Outgoing> batch, Instant now) noexcept {
  const std::lock_guard lock(impl_->mutex_);
  SendResult result;
  for (const auto& datagram : batch) {
    impl_->release_due(now);
    if (!impl_->take(datagram, now)) {
      result.full = true;
      return result;
    }
    ++result.taken;
  }
  impl_->release_due(now);
  return result;
}

void Impair::on_timeout(Instant now) noexcept {
  const std::lock_guard lock(impl_->mutex_);
  impl_->release_due(now);
}

std::optional<Instant> Impair::next_timeout() const noexcept {
  const std::lock_guard lock(impl_->mutex_);
  return impl_->held_.next_due();
}

ImpairCounts Impair::counts() const noexcept {
  const std::lock_guard lock(impl_->mutex_);
  return impl_->counts_;
}

}  // namespace verbena::transport
