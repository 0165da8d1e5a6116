// The receive path: bytes into the decoder, packets into queue pairs in every state.
//
// Input: one byte that chooses the queue pair; one byte of choices (bit 0: keys and destination are made right, bit 1:
// IPv4, bit 2: with ICRC, bit 3: a key of the receive's second piece is wrong, bit 4: no receive is posted); three
// bytes, the lengths of the three pieces of the receive in units of eight; then the UDP payload. Holds: the answer is
// the one that the rules give, the memory of the receive holds header and payload, nothing else was written, and there
// is a completion exactly where there should be.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/testing/workbench.h"
#include "require.h"

namespace verbena::engine {
namespace {

using fuzz::require;
using testing::bring_to;
using testing::Host;
using testing::kQkey;
using testing::move_to;
using Bytes = std::vector<std::byte>;

constexpr std::uint32_t kMtu = 1024;
constexpr std::size_t kPieces = 3;
constexpr std::size_t kPieceRoom = 2048;
constexpr std::byte kUntouched{0xa5};

struct Choices {
  std::size_t queue_pair = 0;
  bool made_right = false;
  bool ipv4 = false;
  bool has_icrc = false;
  bool bad_memory = false;
  bool no_receive = false;
  std::array<std::uint32_t, kPieces> lengths{};
};
constexpr std::size_t kChoicesSize = 2 + kPieces;

Choices read_choices(std::span<const std::byte> input) {
  Choices choices;
  choices.queue_pair = std::to_integer<std::size_t>(input[0]);
  const auto flags = std::to_integer<unsigned>(input[1]);
  choices.made_right = (flags & 1) != 0;
  choices.ipv4 = (flags & 2) != 0;
  choices.has_icrc = (flags & 4) != 0;
  choices.bad_memory = (flags & 8) != 0;
  choices.no_receive = (flags & 16) != 0;
  for (std::size_t i = 0; i < kPieces; ++i) choices.lengths[i] = std::to_integer<std::uint32_t>(input[2 + i]) * 8;
  return choices;
}

struct Subject {
  QpState state;
  bool shares_receives;
};
constexpr std::array<Subject, 8> kSubjects{{{QpState::kReset, false},
                                            {QpState::kInit, false},
                                            {QpState::kReadyToReceive, false},
                                            {QpState::kReadyToSend, false},
                                            {QpState::kSendQueueDrained, false},
                                            {QpState::kSendQueueError, false},
                                            {QpState::kError, false},
                                            {QpState::kReadyToSend, true}}};

class Rig {
 public:
  Rig() : host_(1, kMtu), shared_(4, kPieces) {
    for (const Subject& subject : kSubjects) {
      QpConfig config = host_.config(static_cast<std::uint32_t>(100 + queue_pairs_.size()));
      if (subject.shares_receives) config.shared_receives = &shared_;
      queue_pairs_.push_back(std::make_unique<QueuePair>(config));
      prepare(queue_pairs_.size() - 1);
    }
    std::fill_n(host_.bytes().begin(), kPieces * kPieceRoom, kUntouched);
  }

  void run(const Choices& choices, std::span<const std::byte> udp_payload);

 private:
  QueuePair& queue_pair(std::size_t index) { return *queue_pairs_[index]; }
  // Into the state that the subject is to be in, whatever it was before, with empty queues.
  void prepare(std::size_t index);
  bool post(std::size_t index, const Choices& choices);
  Drop expected(std::size_t index, const Choices& choices, const wire::Packet& packet, bool posted) const;
  void check_memory(const Choices& choices, const Bytes& content);
  void make_right(wire::Packet& packet, std::size_t index) const;

  Host host_;
  testing::QueueSource shared_;
  std::vector<std::unique_ptr<QueuePair>> queue_pairs_;
};

void Rig::prepare(std::size_t index) {
  const Subject& subject = kSubjects[index];
  QueuePair& qp = queue_pair(index);
  const PortView& port = host_.port();
  TakenReceive left;
  while (subject.shares_receives && shared_.take(0, left) == Take::kTaken) continue;
  require(move_to(qp, QpState::kReset, port).has_value(), "reset is always possible");
  if (subject.state == QpState::kReset) return;
  bring_to(qp, std::min(subject.state, QpState::kReadyToSend), port);
  if (subject.state == QpState::kSendQueueDrained || subject.state == QpState::kError) {
    require(move_to(qp, subject.state, port).has_value(), "SQD and ERR");
  } else if (subject.state == QpState::kSendQueueError) {
    SendRequest bad;
    bad.opcode = SendOpcode::kRdmaRead;
    Transmit packet;
    require(qp.post_send(bad) == 0 && !qp.poll_transmit({}, packet), "the request fails");
    require(host_.send_completions().poll().has_value(), "and says so");
  }
  require(qp.state() == subject.state, "the state is reached");
}

bool Rig::post(std::size_t index, const Choices& choices) {
  std::array<Sge, kPieces> sges;
  for (std::size_t i = 0; i < kPieces; ++i) sges[i] = host_.sge(i * kPieceRoom, choices.lengths[i]);
  if (choices.bad_memory) sges[1].lkey ^= 1;
  const int error =
      kSubjects[index].shares_receives ? shared_.queue().post(7, sges) : queue_pair(index).post_receive(7, sges);
  return error == 0;
}

void Rig::make_right(wire::Packet& packet, std::size_t index) const {
  packet.bth.destination_qpn = queue_pairs_[index]->qpn();
  packet.bth.pkey = wire::kDefaultPkey;
  packet.deth.qkey = Qkey(kQkey);
  packet.bth.opcode = packet.bth.psn.value() % 2 == 0 ? wire::Opcode::kUdSendOnly : wire::Opcode::kUdSendOnlyImm;
}

// The rules once more, in other words.
Drop Rig::expected(std::size_t index, const Choices& choices, const wire::Packet& packet, bool posted) const {
  const Subject& subject = kSubjects[index];
  const auto opcode = static_cast<unsigned>(packet.bth.opcode);
  const std::size_t needed = packet.payload.size() + 40;
  const std::size_t first = choices.lengths[0];
  if (subject.state == QpState::kReset || subject.state == QpState::kInit || subject.state == QpState::kError) {
    return Drop::kBadQpState;
  }
  if (opcode != 0x64 && opcode != 0x65) return Drop::kOpcodeNotForQp;
  if (packet.bth.pkey != Pkey(0xffff) && packet.bth.pkey != Pkey(0x7fff)) return Drop::kPkeyMismatch;
  if (packet.deth.qkey != Qkey(kQkey)) return Drop::kQkeyMismatch;
  if (packet.payload.size() > kMtu) return Drop::kPayloadTooLong;
  if (!posted) return Drop::kNoReceiveRequest;
  if (first + choices.lengths[1] + choices.lengths[2] < needed) return Drop::kReceiveTooSmall;
  if (choices.bad_memory && choices.lengths[1] != 0 && first < needed) return Drop::kReceiveProtection;
  return Drop::kNone;
}

// The pieces hold `content` and nothing beyond it was touched. Leaves them untouched.
void Rig::check_memory(const Choices& choices, const Bytes& content) {
  std::size_t done = 0;
  for (std::size_t i = 0; i < kPieces; ++i) {
    const auto piece = host_.bytes().subspan(i * kPieceRoom, kPieceRoom);
    const std::size_t count = std::min<std::size_t>(content.size() - done, choices.lengths[i]);
    const auto from = content.begin() + static_cast<std::ptrdiff_t>(done);
    require(std::equal(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count), from), "the bytes are there");
    const auto rest = piece.subspan(count);
    require(std::all_of(rest.begin(), rest.end(), [](std::byte byte) { return byte == kUntouched; }), "and no others");
    std::fill_n(piece.begin(), count, kUntouched);
    done += count;
  }
  require(done == content.size(), "all of them");
}

void Rig::run(const Choices& choices, std::span<const std::byte> udp_payload) {
  wire::Packet packet;
  if (wire::decode_packet(udp_payload, choices.has_icrc, packet) != Drop::kNone) return;
  const std::size_t index = choices.queue_pair % queue_pairs_.size();
  if (choices.made_right) make_right(packet, index);
  Envelope envelope;
  if (choices.ipv4) envelope = {Gid::from_ipv4(0x0a000002), Gid::from_ipv4(0x0a000001), 0xc000, 3, 64};

  const bool posted = !choices.no_receive && kSubjects[index].state != QpState::kError && post(index, choices);
  QueuePair& qp = queue_pair(index);
  const Drop drop = qp.on_packet(packet, envelope, udp_payload.size(), {});
  require(drop == expected(index, choices, packet, posted), "the answer is that of the rules");

  Bytes content;
  const auto completion = host_.receive_completions().poll();
  if (drop == Drop::kNone) {
    content.resize(wire::kGrhSize);
    wire::write_grh(envelope, udp_payload.size(), std::span(content).first<wire::kGrhSize>());
    content.insert(content.end(), packet.payload.begin(), packet.payload.end());
    require(completion && completion->status == WcStatus::kSuccess && completion->wr_id == 7, "it completes");
    require(completion->byte_length == content.size(), "with its length");
  } else if (drop == Drop::kReceiveProtection) {
    require(completion && completion->status == WcStatus::kLocalProtectionError, "it completes with its error");
    require(qp.state() == QpState::kError, "and the queue pair is in error");
  } else {
    require(!completion, "a dropped packet completes nothing");
  }
  require(!host_.receive_completions().poll(), "once");
  check_memory(choices, content);
  if (posted || drop == Drop::kReceiveProtection) prepare(index);
}

}  // namespace
}  // namespace verbena::engine

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace verbena::engine;
  static Rig rig;
  const auto input = std::as_bytes(std::span(data, size));
  if (input.size() < kChoicesSize || input.size() > 0x4000) return 0;
  rig.run(read_choices(input), input.subspan(kChoicesSize));
  return 0;
}
