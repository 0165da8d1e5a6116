// A sender that loses, doubles, reorders, delays, damages and marks what it is given, by a seeded plan, before it
// passes it on. The same seed and the same sequence of datagrams give the same decisions, whatever the time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/counter.h"
#include "transport/datagram.h"
#include "transport/impair/impair_spec.h"

namespace verbena::transport {

struct ImpairCounts {
  std::uint64_t seen = 0;
  std::uint64_t lost = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;
  std::uint64_t delayed = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t marked = 0;
  std::uint64_t overflowed = 0;

  friend bool operator==(const ImpairCounts&, const ImpairCounts&) = default;
};

// Thread-safety: any thread may call anything; a mutex is held while the next sender is called.
// Ownership:     keeps next and drops by reference; copies what it holds back, at most `held_limit` datagrams.
// Errors:        kImpairLoss and kImpairOverflow are counted as drops.
class Impair final : public Sender {
 public:
  static constexpr std::size_t kHeldLimit = 4096;

  Impair(const ImpairSpec& spec, Sender& next, DropCounter& drops, std::size_t held_limit = kHeldLimit);
  ~Impair() override;
  Impair(const Impair&) = delete;
  Impair& operator=(const Impair&) = delete;

  SendResult send(std::span<const Outgoing> batch, Instant now) noexcept override;

  // Passes on what is due.
  void on_timeout(Instant now) noexcept;
  std::optional<Instant> next_timeout() const noexcept;
  ImpairCounts counts() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace verbena::transport
