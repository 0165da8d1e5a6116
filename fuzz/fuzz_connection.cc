// Both ends of a connection's queue pair, in every state: what arrives, what is posted, what the transport does and
// what time does, in any order.
//
// Input: one byte that chooses the type, one the state that the queue pair is brought to first, one of choices (bit 0:
// a shared receive queue, bits 1-2: receives posted at first, bits 3-5: reads that the other end may have open, bit 6:
// the other end has said that it repeats selectively), and then steps. A step is one byte that chooses it and its
// arguments: packets are built as the other end would and then changed, so that most of them get past the first checks.
// Holds: only memory that was named is written; each request and each receive completes at most once and in order; in
// the error state none is left; what leaves is a packet; and nothing goes on for ever.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/selective_mark.h"
#include "engine/testing/connection_bench.h"
#include "require.h"

namespace verbena::engine {
namespace {

using fuzz::require;
using testing::ConnectionBench;

constexpr std::array<QpType, 4> kTypes{QpType::kRc, QpType::kUc, QpType::kXrcSend, QpType::kXrcReceive};
constexpr std::byte kUntouched{0xa5};
constexpr std::size_t kLocalSize = 0x4000;    // what requests name, at 0
constexpr std::size_t kReceiveSize = 0x2000;  // what receives name, at 0x4000
constexpr std::uint32_t kMostSteps = 64;
constexpr std::uint64_t kFirstReceive = 1ULL << 32;  // wr_ids of receives

// The input as a source of numbers; zeros when it is used up.
class Input {
 public:
  explicit Input(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}
  bool empty() const noexcept { return bytes_.empty(); }
  std::uint8_t u8() noexcept {
    if (bytes_.empty()) return 0;
    const auto value = std::to_integer<std::uint8_t>(bytes_.front());
    bytes_ = bytes_.subspan(1);
    return value;
  }
  std::uint32_t u16() noexcept { return (std::uint32_t{u8()} << 8) | u8(); }
  // Small and around zero.
  std::uint32_t offset() noexcept { return static_cast<std::uint32_t>(static_cast<std::int8_t>(u8())); }
  std::span<const std::byte> rest(std::size_t most) noexcept {
    const auto taken = bytes_.first(std::min(most, bytes_.size()));
    bytes_ = bytes_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const std::byte> bytes_;
};

class Rig {
 public:
  Rig(QpType type, bool shared)
      : shared_(8, 4), shares_(shared), bench_(type, 8, 16, shared ? &shared_ : nullptr), type_(type) {
    std::fill(bench_.host().bytes().begin(), bench_.host().bytes().end(), kUntouched);
  }

  void run(Input input);

 private:
  QueuePair& qp() { return bench_.qp(); }
  void begin(Input& input);
  void step(Input& input);
  void post_send(Input& input);
  void post_receive(Input& input);
  int post_to_its_queue(std::uint64_t wr_id, const Sge& sge);
  void introduce_peer();
  void request_arrives(Input& input);
  void response_arrives(Input& input);
  void anything_arrives(Input& input);
  void transmit(Input& input);
  void respond(Input& input);
  void modify(Input& input);
  void hide_memory();
  void change_queue(Input& input);
  wire::Packet packet(Input& input, std::uint32_t psn) const;
  void deliver(const wire::Packet& packet);
  void drain();
  void check();

  testing::QueueSource shared_;
  const bool shares_;
  ConnectionBench bench_;
  const QpType type_;
  bool hidden_ = false;
  std::uint32_t next_request_ = 0;  // the PSN that the responder may expect
  std::uint32_t last_sent_ = 0;     // the PSN of the latest request that left
  std::uint64_t posted_ = 0;        // wr_ids of sends, which only grow
  std::uint64_t completed_ = 0;
  std::uint64_t receives_posted_ = 0;
  std::uint64_t receives_completed_ = 0;
  std::array<std::byte, 4200> payload_{};
};

// --- before and after

void Rig::begin(Input& input) {
  if (hidden_) hide_memory();
  require(testing::move_to(qp(), QpState::kReset, bench_.host().port()).has_value(), "a reset is always possible");
  while (bench_.sent()) continue;
  while (bench_.received()) continue;
  while (qp().poll_event()) continue;
  qp().give_back_all();
  TakenReceive left;
  while (shares_ && shared_.take(0, left) == Take::kTaken) continue;
  while (bench_.host().shared_receives().take(0, left) == Take::kTaken) continue;
  bench_.host().xrc().add(testing::kSharedQueue, bench_.host().xrc_target());
  completed_ = posted_;
  receives_completed_ = receives_posted_;

  const auto to = static_cast<QpState>(input.u8() % kQpStates);
  const std::uint8_t choices = input.u8();
  bench_.attributes.max_dest_rd_atomic = (choices >> 3) & 0x7;
  next_request_ = ConnectionBench::kReceivePsn;
  last_sent_ = ConnectionBench::kSendPsn;
  if (to == QpState::kReset) return;
  bench_.bring_up(std::min(to, QpState::kReadyToSend));
  Input lengths({});
  for (int i = 0; i < ((choices >> 1) & 0x3); ++i) post_receive(lengths);
  if (to == QpState::kSendQueueError && type_ == QpType::kUc) {
    bench_.post(SendOpcode::kRdmaRead, 8, ++posted_);
    bench_.requests();
  } else if (to > QpState::kReadyToSend && to != QpState::kSendQueueError) {
    require(bench_.go(to).has_value(), "SQD and ERR");
  }
  if ((choices & 0x40) != 0) introduce_peer();
  drain();
}

// The other end says that it repeats selectively, by writes of nothing.
void Rig::introduce_peer() {
  for (std::uint32_t i = 0; i < PeerAbility::kEnough; ++i) {
    wire::Packet made = bench_.incoming_write(wire::Opcode::kRcWriteOnly, next_request_, 0);
    made.bth.migration_request = selective_mark(made.bth.psn, made.bth.destination_qpn);
    deliver(made);
  }
}

void Rig::drain() {
  while (const auto completion = bench_.sent()) {
    require(completion->wr_id > completed_ && completion->wr_id <= posted_, "sends complete once and in order");
    completed_ = completion->wr_id;
  }
  while (const auto completion = bench_.received()) {
    const std::uint64_t number = completion->wr_id - kFirstReceive;
    require(number > receives_completed_ && number <= receives_posted_, "receives complete once and in order");
    receives_completed_ = number;
  }
}

void Rig::check() {
  const auto bytes = bench_.host().bytes();
  static const std::vector<std::byte> kClean(testing::Host::kMemory, kUntouched);
  const auto untouched = [&](std::size_t from, std::size_t to) {
    return std::memcmp(bytes.data() + from, kClean.data(), to - from) == 0;
  };
  require(untouched(0x4000 + kReceiveSize, ConnectionBench::kGrantedAt), "nothing behind the receives is written");
  require(untouched(ConnectionBench::kGrantedAt + ConnectionBench::kGrantedSize, bytes.size()),
          "nothing behind the granted memory is written");
}

// --- steps

void Rig::post_send(Input& input) {
  const auto opcode = static_cast<SendOpcode>(input.u8() % 16);
  const std::uint32_t length = input.u16() % (kLocalSize / 2);
  const std::uint32_t flags = input.u8() & (kSendFence | kSendSignaled | kSendSolicited | kSendInline);
  SendRequest request = bench_.request(opcode, length, posted_ + 1, flags);
  request.immediate = input.u8();
  const Sge wrong{0x1000, length, 0x1234};
  if (input.u8() % 16 == 1) request.sges = {&wrong, 1};
  if (request.sges.data() == &wrong && (flags & kSendInline) != 0) return;
  if (qp().post_send(request) == 0) ++posted_;
}

int Rig::post_to_its_queue(std::uint64_t wr_id, const Sge& sge) {
  if (type_ == QpType::kXrcReceive) return bench_.host().shared_receives().post(wr_id, {&sge, 1});
  return shares_ ? shared_.queue().post(wr_id, {&sge, 1}) : qp().post_receive(wr_id, {&sge, 1});
}

void Rig::post_receive(Input& input) {
  const std::uint32_t length = input.empty() ? 600 : input.u16() % kReceiveSize;
  Sge sge = bench_.host().sge(0x4000, length);
  if (!input.empty() && input.u8() % 16 == 1) sge.lkey ^= 1;
  const std::uint64_t wr_id = kFirstReceive + receives_posted_ + 1;
  if (post_to_its_queue(wr_id, sge) == 0) ++receives_posted_;
}

wire::Packet Rig::packet(Input& input, std::uint32_t psn) const {
  const auto transport = static_cast<std::uint8_t>(type_ == QpType::kRc   ? wire::Transport::kRc
                                                   : type_ == QpType::kUc ? wire::Transport::kUc
                                                                          : wire::Transport::kXrc);
  wire::Packet made;
  made.bth.opcode = static_cast<wire::Opcode>(transport | (input.u8() & 0x1f));
  made.bth.psn = Psn(psn + input.offset());
  const std::uint8_t choices = input.u8();
  made.bth.ack_request = (choices & 1) != 0;
  made.bth.solicited = (choices & 2) != 0;
  made.reth.rkey = made.atomic_eth.rkey = (choices & 4) != 0 ? MemoryKey(0x999) : bench_.rkey();
  made.reth.address = made.atomic_eth.address = bench_.granted_address() + (choices & 8 ? input.u16() - 0x1000U : 0);
  made.reth.length = (choices & 16) != 0 ? input.u16() * input.u8() : 8;
  made.feth.placement = choices >> 5;
  made.aeth.syndrome = wire::Syndrome((choices & 16) != 0 ? input.u8() : 0x1f);
  made.aeth.msn = choices;
  for (std::uint64_t& word : made.selective_eth.words) word = (choices & 64) != 0 ? ~0ULL : choices * 0x0101ULL;
  made.xrceth.srqn = testing::kSharedQueue + (choices == 0xff ? 1 : 0);
  std::size_t size = 0;
  if (wire::row_of(made.bth.opcode).has_payload) size = (choices & 32) != 0 ? ConnectionBench::kMtu : 8;
  if ((choices & 64) != 0) size = input.u16() % payload_.size();
  if ((choices & 16) == 0) made.reth.length = static_cast<std::uint32_t>(size);
  made.payload = std::span(payload_).first(size);
  return made;
}

void Rig::deliver(const wire::Packet& arrived) {
  const auto& row = wire::row_of(arrived.bth.opcode);
  if (!row.is_known()) return;
  if (row.is_response()) {
    bench_.respond(arrived);
    return;
  }
  const Drop drop = bench_.receive(arrived);
  if (drop != Drop::kNone) return;
  const bool reads = row.operation == wire::Operation::kReadRequest;
  const std::uint32_t packets =
      reads ? std::max(1U, (arrived.reth.length + ConnectionBench::kMtu - 1) / ConnectionBench::kMtu) : 1;
  if (arrived.bth.psn == Psn(next_request_)) next_request_ = (next_request_ + packets) & Psn::kMask;
}

void Rig::request_arrives(Input& input) {
  deliver(packet(input, next_request_));
}

void Rig::response_arrives(Input& input) {
  wire::Packet made = packet(input, last_sent_);
  constexpr std::array<std::uint8_t, 7> kResponses{0x11, 0x0d, 0x0e, 0x0f, 0x10, 0x12, 0x11};
  const auto transport = static_cast<std::uint8_t>(made.bth.opcode) & 0xe0U;
  const std::size_t number = (static_cast<std::uint8_t>(made.bth.opcode) & 0x1f) % kResponses.size();
  made.bth.opcode = number + 1 == kResponses.size() ? wire::Opcode::kSelectiveAcknowledge
                                                    : static_cast<wire::Opcode>(transport | kResponses[number]);
  deliver(made);
}

void Rig::anything_arrives(Input& input) {
  wire::Packet made;
  const auto bytes = input.rest(64);
  if (wire::decode_packet(bytes, false, made) != Drop::kNone) return;
  deliver(made);
}

void Rig::transmit(Input& input) {
  std::array<Transmit, 20> batch;
  std::size_t count = 0;
  while (count < batch.size() && qp().poll_transmit(bench_.now, batch[count])) ++count;
  require(count < batch.size(), "a queue pair waits for what becomes of its packets");
  const std::size_t taken = std::min<std::size_t>(count, input.u8());
  for (std::size_t i = 0; i < taken; ++i) {
    wire::Packet sent;
    const auto bytes = testing::flatten(batch[i]);
    require(wire::decode_packet(bytes, false, sent) == Drop::kNone, "what leaves is a packet");
    require(bytes.size() == batch[i].size, "of the length that it says");
    last_sent_ = sent.bth.psn.value();
  }
  qp().on_transmitted(taken);
  if (taken < count) qp().rewind_transmit();
  qp().settle_receive();
}

void Rig::respond(Input& input) {
  std::array<Transmit, 20> batch;
  std::size_t count = 0;
  while (count < batch.size() && qp().poll_response(bench_.now, batch[count])) ++count;
  require(count < batch.size(), "a responder waits for what becomes of its packets");
  const std::size_t taken = std::min<std::size_t>(count, input.u8());
  for (std::size_t i = 0; i < taken; ++i) {
    wire::Packet sent;
    const auto bytes = testing::flatten(batch[i]);
    require(wire::decode_packet(bytes, false, sent) == Drop::kNone, "what leaves is a packet");
    require(wire::row_of(sent.bth.opcode).is_response() || sent.bth.opcode == wire::Opcode::kCnp, "and an answer");
  }
  if (qp().has_responses() || count != 0) qp().on_responded(taken);
  if (taken < count) qp().rewind_responses();
  qp().settle_send();
}

void Rig::modify(Input& input) {
  const auto to = static_cast<QpState>(input.u8() % kQpStates);
  if (to == QpState::kReset) return;  // begin() does
  const QpEdge& edge = edge_of(type_, qp().state(), to);
  const AttrMask mask = kAttrState | edge.required | (input.u8() % 2 == 0 ? 0 : edge.optional & ~kAttrAlternatePath);
  QpAttributes attributes = bench_.attributes;
  attributes.state = to;
  attributes.current_state = qp().state();
  static_cast<void>(qp().modify(attributes, mask, bench_.host().port()));
}

// The granted region goes, or comes back under another key.
void Rig::hide_memory() {
  if (hidden_) {
    require(bench_.host().memory().insert(bench_.granted_region()).has_value(), "there is room");
  } else {
    bench_.host().memory().remove(bench_.rkey());
  }
  hidden_ = !hidden_;
}

// Of XRC: the queue goes, or another has its number.
void Rig::change_queue(Input& input) {
  auto& queues = bench_.host().xrc();
  queues.remove(testing::kSharedQueue);
  if (input.u8() % 2 == 0) queues.add(testing::kSharedQueue, bench_.host().xrc_target());
}

void Rig::step(Input& input) {
  switch (input.u8() % 12) {
    case 0:
    case 1:
    case 2:
      return request_arrives(input);
    case 3:
    case 4:
      return response_arrives(input);
    case 5:
      return anything_arrives(input);
    case 6:
      return post_send(input);
    case 7:
      return post_receive(input);
    case 8:
      return transmit(input);
    case 9:
      return respond(input);
    case 10:
      bench_.run_timer();
      return;
    default:
      switch (input.u8() % 8) {
        case 0:
        case 4:
          return hide_memory();
        case 1:
          return change_queue(input);
        default:
          return modify(input);
      }
  }
}

void Rig::run(Input input) {
  begin(input);
  for (std::uint32_t steps = 0; steps < kMostSteps && !input.empty(); ++steps) {
    step(input);
    drain();
    if (qp().state() == QpState::kError) {
      require(!qp().has_untransmitted() && !qp().next_timeout(), "everything was flushed");
    }
  }
  check();
}

}  // namespace
}  // namespace verbena::engine

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace verbena::engine;
  static std::vector<std::unique_ptr<Rig>> rigs;
  if (rigs.empty()) {
    for (const QpType type : kTypes) {
      for (const bool shared : {false, true}) rigs.push_back(std::make_unique<Rig>(type, shared));
    }
  }
  const auto input = std::as_bytes(std::span(data, size));
  if (input.size() < 4 || input.size() > 0x1000) return 0;
  Input numbers(input);
  const std::uint8_t type = numbers.u8();
  rigs[type % rigs.size()]->run(numbers);
  return 0;
}
