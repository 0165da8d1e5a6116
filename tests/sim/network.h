// A network in virtual time between simulated hosts: it loses, duplicates, damages, marks, delays and so reorders, as a
// seed says. A host may hang on links of a given speed, with a queue in front of the one towards it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "base/envelope.h"
#include "base/instant.h"

namespace verbena::sim {

struct Impairment {
  double loss = 0;
  double duplication = 0;
  Duration least_delay{1'000};
  Duration most_delay{1'000};  // above the least: datagrams overtake each other
  double corruption = 0;       // one bit of the datagram is turned over
  double marking = 0;          // as a congested network marks what is ECN-capable
  double reordering = 0;       // held back by `hold`, so that others overtake it
  Duration hold{20'000};
};

// What leads to a host, and away from it. Its queue marks at random, the oftener the longer it is (RED).
struct Link {
  std::uint64_t bits_per_second = 10'000'000'000;
  double most_bytes = 400'000;  // what comes beyond is lost
  double marks_from = 20'000;
  double marks_most_at = 200'000;
  double marks_most = 0.1;  // the probability there; beyond all are marked
};

struct LinkCounts {
  std::uint64_t carried = 0;
  std::uint64_t marked = 0;
  std::uint64_t overflowed = 0;
  double longest_queue = 0;  // bytes
};

struct Datagram {
  Envelope envelope;
  std::vector<std::byte> bytes;
};

class Network {
 public:
  using Receiver = std::function<void(const Datagram&, Instant)>;

  Network(std::uint64_t seed, const Impairment& impairment) : random_(seed), impairment_(impairment) {}

  // Everything sent to `address` from now on goes to `receiver`.
  void connect(const Gid& address, Receiver receiver) { receivers_[address] = std::move(receiver); }

  // From now on what goes to and comes from `address` takes the time that the link needs.
  void attach(const Gid& address, const Link& link) { links_.emplace(address, Wire{link, {}, {}, {}}); }
  const LinkCounts& counts(const Gid& address) const { return links_.at(address).counts; }
  void forget_counts(const Gid& address) { links_.at(address).counts = {}; }

  void change(const Impairment& impairment) { impairment_ = impairment; }

  // How many copies are on their way: 0, 1 or 2.
  int send(Datagram datagram, Instant now) {
    if (happens(impairment_.loss)) return 0;
    const int copies = happens(impairment_.duplication) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      Datagram copy = i + 1 < copies ? datagram : std::move(datagram);
      if (impairment_.corruption > 0 && happens(impairment_.corruption)) damage(copy);
      if (impairment_.marking > 0 && happens(impairment_.marking)) mark(copy);
      const auto from = links_.find(copy.envelope.source);
      const Instant left = from == links_.end() ? now : occupy(from->second, from->second.up_free_at, copy, now);
      in_flight_.emplace(left + delay(), InFlight{std::move(copy), false});
    }
    return copies;
  }

  bool idle() const { return in_flight_.empty(); }
  // When the next datagram arrives. Requires: !idle().
  Instant next_arrival() const { return in_flight_.begin()->first; }

  // Hands over what arrives up to `now`, in order of arrival.
  void run_until(Instant now) {
    while (!in_flight_.empty() && in_flight_.begin()->first <= now) {
      auto node = in_flight_.extract(in_flight_.begin());
      InFlight& flying = node.mapped();
      const auto link = links_.find(flying.datagram.envelope.destination);
      if (link != links_.end() && !std::exchange(flying.queued, true)) {
        if (const auto arrival = queue(link->second, flying.datagram, node.key())) {
          node.key() = *arrival;
          in_flight_.insert(std::move(node));
        }
        continue;
      }
      const auto receiver = receivers_.find(flying.datagram.envelope.destination);
      if (receiver != receivers_.end()) receiver->second(flying.datagram, node.key());
    }
  }

 private:
  struct Wire {
    Link link;
    Instant up_free_at;
    Instant down_free_at;
    LinkCounts counts;
  };
  struct InFlight {
    Datagram datagram;
    bool queued = false;  // it is through the queue in front of its host
  };

  // When the last bit has left.
  static Instant occupy(const Wire& wire, Instant& free_at, const Datagram& datagram, Instant now) {
    constexpr std::size_t kIpAndUdp = 28;
    constexpr double kBitsTimesNs = 8e9;
    const double bits = static_cast<double>(datagram.bytes.size() + kIpAndUdp) * kBitsTimesNs;
    const auto takes = static_cast<std::int64_t>(bits / static_cast<double>(wire.link.bits_per_second));
    free_at = std::max(free_at, now) + Duration(takes);
    return free_at;
  }
  std::optional<Instant> queue(Wire& wire, Datagram& datagram, Instant now) {
    const auto waits = static_cast<double>(std::max<std::int64_t>(0, (wire.down_free_at - now).count()));
    const double bytes = waits * static_cast<double>(wire.link.bits_per_second) / 8e9;
    wire.counts.longest_queue = std::max(wire.counts.longest_queue, bytes);
    if (bytes > wire.link.most_bytes) {
      ++wire.counts.overflowed;
      return std::nullopt;
    }
    const double into = (bytes - wire.link.marks_from) / (wire.link.marks_most_at - wire.link.marks_from);
    if (into > 0 && happens(into > 1 ? 1 : into * wire.link.marks_most)) {
      mark(datagram);
      ++wire.counts.marked;
    }
    ++wire.counts.carried;
    return occupy(wire, wire.down_free_at, datagram, now);
  }
  static void mark(Datagram& datagram) {
    constexpr std::uint8_t kEcn = 0x3;
    if ((datagram.envelope.traffic_class & kEcn) != 0) datagram.envelope.traffic_class |= kEcn;
  }
  bool happens(double probability) { return static_cast<double>(random_() >> 11) * 0x1p-53 < probability; }
  void damage(Datagram& datagram) {
    if (datagram.bytes.empty()) return;
    datagram.bytes[random_() % datagram.bytes.size()] ^= static_cast<std::byte>(1U << (random_() % 8));
  }
  Duration delay() {
    const auto range = static_cast<std::uint64_t>((impairment_.most_delay - impairment_.least_delay).count());
    const Duration held =
        impairment_.reordering > 0 && happens(impairment_.reordering) ? impairment_.hold : Duration(0);
    return impairment_.least_delay + held + Duration(static_cast<std::int64_t>(random_() % (range + 1)));
  }

  std::mt19937_64 random_;
  Impairment impairment_;
  std::map<Gid, Receiver> receivers_;
  std::map<Gid, Wire> links_;
  std::multimap<Instant, InFlight> in_flight_;
};

}  // namespace verbena::sim
