// One direction of a connection, with a model beside it that knows what must come of each request: which bytes lie in
// the other end's memory, which messages arrive there and in which order, and what completes how.
//
// Requests are carried out in the order in which they were posted, but for reads, whose bytes may be fetched late: what
// writes to a place that is still being read carries a fence.
#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <span>
#include <vector>

#include "sim/station.h"

namespace verbena::sim {

struct StreamCounts {
  std::uint64_t posted = 0;
  std::uint64_t completed = 0;
  std::uint64_t messages_expected = 0;  // that take a receive
  std::uint64_t messages_received = 0;
  std::uint64_t messages_lost = 0;  // UC only

  friend bool operator==(const StreamCounts&, const StreamCounts&) = default;
};

class Stream {
 public:
  static constexpr std::size_t kPlaces = 6;  // of the other end's memory, each as long as the longest message

  Stream(Station& from, Station& to, std::size_t connection, std::uint32_t longest);

  // Posts a request of a random kind, if there is room.
  void post(std::mt19937_64& random);
  // Takes a completion of a request of this stream.
  void on_completion(const engine::Completion& completion);
  // A message arrived: `pieces` are the memory of its receive.
  void on_received(const engine::Completion& completion, std::span<const std::span<std::byte>> pieces);

  bool idle() const { return outstanding_.empty(); }
  // Once nothing is on its way any more.
  void check_at_rest();
  const StreamCounts& counts() const { return counts_; }

  static std::size_t memory_for(std::uint32_t longest, std::uint32_t depth);

 private:
  struct Posted {
    std::uint64_t number = 0;
    engine::SendOpcode opcode{};
    bool signaled = false;
    std::uint32_t length = 0;
    std::size_t place = 0;
    std::vector<std::span<std::byte>> pieces;  // of the local memory, in order
    std::vector<std::byte> result;             // that they must hold in the end, of what reads
  };
  struct Expected {
    std::uint64_t number = 0;
    bool has_immediate = false;
    bool is_write = false;
    std::size_t place = 0;
    std::size_t offset = 0;
    std::vector<std::byte> bytes;
  };

  bool reliable() const { return from_.agreement(connection_).is_reliable(); }
  engine::SendOpcode choose(std::mt19937_64& random) const;
  std::uint32_t choose_length(std::mt19937_64& random) const;
  // Cuts what a message needs out of a buffer, in pieces that do not lie in the order in which they are filled.
  std::vector<std::span<std::byte>> cut(std::span<std::byte> buffer, std::size_t length, std::mt19937_64& random) const;
  void fill(Posted& posted, std::mt19937_64& random, std::vector<std::byte>& bytes);
  // What the request does to the model of the other end's memory, and what it must read from it.
  void carry_out(Posted& posted, engine::SendRequest& request, const std::vector<std::byte>& bytes, std::size_t offset);
  void expect_message(const Posted& posted, const engine::SendRequest& request, const std::vector<std::byte>& bytes,
                      std::size_t offset);
  void verify(const Posted& posted);
  bool same_message(const Expected& expected, const engine::Completion& completion,
                    std::span<const std::span<std::byte>> pieces) const;

  Station& from_;
  Station& to_;
  const std::size_t connection_;
  const std::uint32_t longest_;
  std::span<std::byte> local_;   // `depth` buffers
  std::span<std::byte> remote_;  // kPlaces
  Station::Grant grant_;
  std::vector<std::byte> model_;  // of remote_
  std::array<std::uint32_t, kPlaces> readers_{};
  std::array<std::uint64_t, kPlaces> last_writer_{};
  std::array<std::uint64_t, kPlaces> last_sure_writer_{};
  std::uint64_t next_number_ = 1;
  std::deque<Posted> outstanding_;
  std::deque<Expected> expected_;
  StreamCounts counts_;
};

}  // namespace verbena::sim
