// A simulated host with connections: queue pairs on the engine, driven as a device drives them, and the memory that
// they work on. Packets carry an ICRC over the network, so damage is found and the packet is lost.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "base/drop.h"
#include "engine/testing/workbench.h"
#include "engine/transport_event.h"
#include "sim/network.h"

namespace verbena::sim {

// One end of a connection, as both ends agree on it. Of XRC, each end is a queue pair that sends and one that receives:
// `type` is that of the one that sends.
struct Agreement {
  engine::QpType type = engine::QpType::kRc;
  std::uint32_t mtu = 1024;
  std::uint32_t window = 64;
  std::uint8_t max_reads = 4;
  std::uint8_t timeout = 6;
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;
  std::uint8_t rnr_timer = 2;
  std::uint32_t depth = 16;     // of each queue
  std::uint32_t first_psn = 0;  // of the end with the lower number; the other's is three more
  bool signal_all = false;
  bool minds_congestion = true;
  bool first_repeats = true;  // the end with the lower number repeats selectively
  bool second_repeats = true;

  bool is_reliable() const { return type != engine::QpType::kUc; }
  bool both_repeat() const { return is_reliable() && first_repeats && second_repeats; }
  bool is_xrc() const { return type == engine::QpType::kXrcSend; }
};

class Station final : engine::TransportObserver {
 public:
  // Sees each packet that is sent, before the network gets it.
  using Watch = std::function<void(std::size_t connection, const wire::Packet& packet)>;

  static constexpr std::byte kGuard{0xa5};
  static constexpr std::size_t kGuardSize = 64;
  static constexpr std::uint32_t kSharedReceives = 32;
  static constexpr std::uint32_t kDatagramDepth = 16;  // of each queue of datagrams

  Station(std::uint8_t number, Network& network, std::size_t memory);
  Station(const Station&) = delete;
  Station& operator=(const Station&) = delete;

  // Makes the next connection's end. With `shared`, it takes receives out of the station's shared queue.
  void add_connection(const Agreement& agreement, bool shared);
  // Brings it up towards the same connection of `peer`.
  void connect(std::size_t connection, Station& peer);

  // Makes the queue pair for datagrams, ready to send and receive.
  void add_datagrams();
  // Requires, as all with datagrams in the name: add_datagrams().
  engine::QueuePair& datagrams() { return *datagrams_; }
  engine::AddressHandle datagram_address(const Station& peer);
  engine::testing::QueueSink& datagram_send_completions() { return datagram_send_completions_; }
  engine::testing::QueueSink& datagram_receive_completions() { return datagram_receive_completions_; }
  std::uint64_t datagrams_delivered() const { return datagrams_delivered_; }

  std::size_t connections() const { return ends_.size(); }
  engine::QueuePair& queue_pair(std::size_t connection) { return *ends_[connection].qp; }
  // Its own, or of XRC one more.
  engine::QueuePair& receiver(std::size_t connection) { return *ends_[connection].receiving(); }
  const Agreement& agreement(std::size_t connection) const { return ends_[connection].agreement; }
  bool shares_receives(std::size_t connection) const { return ends_[connection].shared; }
  engine::SharedReceiveQueue& shared_receives() { return shared_.queue(); }
  std::optional<std::size_t> connection_of(std::uint32_t qpn) const;
  engine::testing::QueueSink& send_completions() { return send_completions_; }
  engine::testing::QueueSink& receive_completions() { return receive_completions_; }
  void watch(Watch watch) { watch_ = std::move(watch); }

  // A stretch of memory with a guard behind it, of which the other stations may touch what is `granted`.
  std::span<std::byte> take_memory(std::size_t size);
  // By what name the others know them: the same in every run, wherever the memory lies.
  struct Grant {
    MemoryKey key;
    std::uint64_t address = 0;
  };
  Grant grant(std::span<std::byte> bytes);
  engine::Sge sge(std::span<const std::byte> bytes) const {
    return {reinterpret_cast<std::uint64_t>(bytes.data()), static_cast<std::uint32_t>(bytes.size()),
            local_.key.value()};
  }
  bool guards_are_whole() const;

  // Puts what may go now on the network. A transport that is full in the middle of a batch takes the rest later.
  void transmit(Instant now, std::mt19937_64& random, bool always_room);
  void run_timers(Instant now);
  std::optional<Instant> next_timer() const;
  bool has_work() const;
  // When a pace lets the next packet go.
  std::optional<Instant> next_departure() const;
  const Gid& address() const;

  std::uint64_t drops(Drop drop) const { return drops_[static_cast<std::size_t>(drop)]; }
  std::uint64_t events(engine::TransportEvent event) const { return events_[static_cast<std::size_t>(event)]; }
  std::uint64_t packets_sent() const { return packets_; }
  std::uint64_t digest() const { return digest_; }  // of all that arrived, and when

 private:
  struct End {
    Agreement agreement;
    bool shared = false;
    std::unique_ptr<engine::QueuePair> qp;
    std::unique_ptr<engine::QueuePair> receiver;  // of XRC

    engine::QueuePair* receiving() const { return receiver != nullptr ? receiver.get() : qp.get(); }
  };

  void connect(engine::QueuePair& qp, const Agreement& agreed, Station& peer, Qpn destination);

  void on_transport_event(engine::TransportEvent event) noexcept override {
    ++events_[static_cast<std::size_t>(event)];
  }
  void on_datagram(const Datagram& datagram, Instant now);
  Drop deliver(const Datagram& datagram, Instant now);
  // `connection`: none for a datagram.
  void send(std::optional<std::size_t> connection, const engine::Transmit& packet, Instant now);
  void transmit_datagrams(Instant now, std::size_t budget);
  void transmit_requests(std::size_t connection, Instant now, std::size_t budget);
  void transmit_responses(std::size_t connection, Instant now, std::size_t budget);

  const bool is_first_;
  engine::testing::Host host_;
  Network& network_;
  std::vector<std::byte> memory_;
  std::size_t taken_ = 0;
  std::vector<std::span<const std::byte>> guards_;
  engine::MemoryRegion local_;
  std::vector<std::unique_ptr<engine::MemoryRegion>> granted_;
  engine::testing::QueueSink send_completions_{4096};
  engine::testing::QueueSink receive_completions_{4096};
  engine::testing::QueueSource shared_{kSharedReceives, engine::kMaxSge};
  std::vector<End> ends_;
  engine::testing::QueueSink datagram_send_completions_;
  engine::testing::QueueSink datagram_receive_completions_;
  std::unique_ptr<engine::QueuePair> datagrams_;
  std::uint64_t datagrams_delivered_ = 0;
  Watch watch_;
  std::array<std::uint64_t, kDropCount> drops_{};
  std::array<std::uint64_t, 32> events_{};
  std::uint64_t packets_ = 0;
  std::uint64_t digest_ = 0xcbf29ce484222325;
};

}  // namespace verbena::sim
