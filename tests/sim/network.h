// A network in virtual time between simulated hosts: it loses, duplicates, damages, delays and so reorders, as a seed
// says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
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
  double reordering = 0;       // held back by `hold`, so that others overtake it
  Duration hold{20'000};
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

  // How many copies are on their way: 0, 1 or 2.
  int send(Datagram datagram, Instant now) {
    if (happens(impairment_.loss)) return 0;
    const int copies = happens(impairment_.duplication) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      Datagram copy = i + 1 < copies ? datagram : std::move(datagram);
      if (impairment_.corruption > 0 && happens(impairment_.corruption)) damage(copy);
      in_flight_.emplace(now + delay(), std::move(copy));
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
      const auto receiver = receivers_.find(node.mapped().envelope.destination);
      if (receiver != receivers_.end()) receiver->second(node.mapped(), node.key());
    }
  }

 private:
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
  std::multimap<Instant, Datagram> in_flight_;
};

}  // namespace verbena::sim
