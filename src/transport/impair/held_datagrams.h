// Datagrams that wait for their time, copied, in the order in which they are due.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "transport/datagram.h"

namespace verbena::transport {

// A datagram that owns what Outgoing only points to.
class HeldDatagram {
 public:
  explicit HeldDatagram(const Outgoing& datagram);

  // Valid until the next call or change.
  Outgoing outgoing() noexcept;
  std::vector<std::byte>& bytes() noexcept { return bytes_; }
  // Sets the mark of a congested network (CE), in the IP header, too.
  void mark() noexcept;

 private:
  Envelope envelope_;
  std::vector<std::byte> bytes_;
  std::vector<std::byte> network_header_;
  ConstBytes part_;
  Slot slot_;
  bool has_icrc_;
};

// Thread-safety: none; one owner at a time.
class HeldDatagrams {
 public:
  static constexpr std::uint64_t kNeverOvertaken = std::numeric_limits<std::uint64_t>::max();

  explicit HeldDatagrams(std::size_t limit) noexcept : limit_(limit) {}

  // Until `due`, or until the `overtaken_at`-th datagram was sent. False where there are too many.
  bool hold(HeldDatagram datagram, Instant due, std::uint64_t overtaken_at = kNeverOvertaken);

  // The first that is due, if any; it stays until pop_due() or put_off_due().
  HeldDatagram* find_due(Instant now, std::uint64_t sent) noexcept;
  void pop_due() noexcept;
  void put_off_due(Instant until);

  std::optional<Instant> next_due() const noexcept;

 private:
  struct Entry {
    HeldDatagram datagram;
    std::uint64_t overtaken_at;
  };
  using Entries = std::map<std::pair<Instant, std::uint64_t>, Entry>;

  std::size_t limit_;
  std::uint64_t order_ = 0;
  Entries entries_;
  std::multimap<std::uint64_t, Entries::iterator> by_overtakers_;  // those that can be overtaken
  Entries::iterator due_;                                          // what find_due() found
};

}  // namespace verbena::transport
