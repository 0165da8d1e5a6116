// Datagrams of one station to another, beside its connections, with a model of what may come of each: it completes once
// and in order where it is sent, and where it arrives it is whole, at most as often as the network delivers it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <span>
#include <vector>

#include "sim/station.h"

namespace verbena::sim {

struct DatagramCounts {
  std::uint64_t posted = 0;
  std::uint64_t completed = 0;
  std::uint64_t received = 0;

  friend bool operator==(const DatagramCounts&, const DatagramCounts&) = default;
};

class DatagramStream {
 public:
  static constexpr std::uint32_t kLongest = 1'024;
  static constexpr std::uint32_t kReceives = 16;

  // `copies`: how often the network may deliver one.
  DatagramStream(Station& from, Station& to, int copies);

  void post(std::mt19937_64& random);
  void post_receives();
  void take_completions();

  // Once nothing is on its way any more.
  void check_at_rest() const;
  const DatagramCounts& counts() const { return counts_; }

  static std::size_t memory_for_sender();
  static std::size_t memory_for_receiver();

 private:
  struct Posted {
    std::uint64_t number;
    bool signaled;
  };
  struct Sent {
    std::uint32_t length;
    bool has_immediate;
    int received = 0;
  };

  void on_sent(const engine::Completion& completion);
  void on_received(const engine::Completion& completion);

  Station& from_;
  Station& to_;
  const int copies_;
  const engine::AddressHandle address_;
  std::vector<std::span<std::byte>> send_buffers_;
  std::vector<std::span<std::byte>> receive_buffers_;
  std::vector<bool> receive_posted_;
  std::uint64_t next_number_ = 1;
  std::deque<Posted> outstanding_;
  std::map<std::uint64_t, Sent> sent_;
  DatagramCounts counts_;
};

}  // namespace verbena::sim
