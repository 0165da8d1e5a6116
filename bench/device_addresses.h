// What addresses cost on one verbs device: creating one, finding one again, and sending through them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/ud_endpoint.h"
#include "hit_rounds.h"
#include "rivals.h"

namespace verbena::bench {

struct AddressPlan {
  std::string device{};
  std::string peer_device{};
  std::string to;
  std::size_t destinations = 1000;
  std::uint64_t datagrams = 4000;   // a round and way
  std::uint64_t look_ups = 20'000;  // a round, way and thread
  std::uint64_t creations = 2000;
  std::size_t rounds = 31;
};

// One way of sending, over all rounds. Ratios are taken within a round, so that what slows a whole round cancels.
struct RateFigure {
  std::string name;
  double per_second = 0;            // median
  double fixed_handle_times = 0;    // median of the rounds' ratios to the fixed handle's
  double fixed_handle_lowest = 0;   // quartiles of the same
  double fixed_handle_highest = 0;  //
  double create_per_send_times = 0;
  double processor_ns = 0;               // of the whole process, a datagram: sending, receiving, helpers
  double fixed_handle_processor = 0;     // the fixed handle's divided by it, median of the rounds
  double create_per_send_processor = 0;  // the same to a handle for each send
};

struct AddressFigures {
  std::string device{};
  std::string peer_device{};
  double create_destroy_ns = 0;
  std::vector<HitFigure> hits{};
  std::vector<RateFigure> rates{};
  std::uint64_t lost = 0;
};

// Thread-safety: none. Ownership: all its verbs objects. Errors: of the middleware, unchanged.
class DeviceAddresses {
 public:
  explicit DeviceAddresses(AddressPlan plan) : plan_(std::move(plan)) {}

  Result<AddressFigures> measure();

 private:
  // Posts datagram number `sequence`.
  using Post = std::function<Status(std::uint64_t sequence)>;
  struct RateWay {
    const char* name;
    Post post;
    std::vector<double> rounds{};     // datagrams a second
    std::vector<double> processor{};  // datagrams a second of processor time
  };
  struct Rate {
    double per_second = 0;
    double per_processor_second = 0;
  };

  Status open_ends();
  Status make_addresses();
  void fill_rivals();
  std::vector<HitWay> hit_ways();
  std::vector<RateWay> rate_ways();
  Status measure_rates(std::vector<RateWay>& ways);
  Result<Rate> rate(const Post& post);
  Result<std::uint64_t> receive_all();
  Result<double> creation_ns();
  Status post(ibv_ah* address);
  Status post_created();

  AddressPlan plan_;
  std::unique_ptr<cli::UdEndpoint> far_;
  std::unique_ptr<cli::UdEndpoint> near_;
  std::vector<Destination> destinations_;
  std::vector<AhHandle> handles_;
  std::vector<AhLease> leases_;
  std::vector<AttributeKey> keys_;
  std::vector<AhSender> senders_;  // one a thread that looks up
  std::unique_ptr<SpinLockedTable> spin_locked_;
  SharedMutexMap shared_mutex_;
  ibv_ah_attr attributes_{};  // of the first
  std::uint64_t lost_ = 0;
};

}  // namespace verbena::bench
