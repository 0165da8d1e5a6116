// modify() with whatever a program may pass: any type, any next state and any attributes in any number of steps.
//
// Input: one byte that chooses the type; then steps. A step is one byte, the next state (also those that there are
// not); four bytes, the attribute mask; one byte, how many attributes are not what a peer would agree on, and for each
// of these one byte that chooses it and four bytes, its value. Bit 7 of that count: the mask is what the edge needs,
// with the bits given on top of it. Holds: what the table, the ranges and the port allow is done, and the queue pair is
// in the state asked for; all else is refused as EINVAL in words and changes nothing.
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "engine/testing/workbench.h"
#include "require.h"

namespace verbena::engine {
namespace {

using fuzz::require;
using testing::Host;

constexpr std::size_t kMostSteps = 64;

class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  std::uint8_t u8() {
    if (bytes_.empty()) return 0;
    const std::uint8_t value = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return value;
  }
  std::uint32_t u32() {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) value = value << 8 | u8();
    return value;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

struct Hosts {
  Host own{1};
  Host peer{2};
};

QpAttributes agreeable(Hosts& hosts) {
  QpAttributes attributes;
  attributes.port = 1;
  attributes.path_mtu = 3;
  attributes.qkey = testing::kQkey;
  attributes.destination_qpn = 5;
  attributes.address = hosts.own.address_of(hosts.peer).vector;
  attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4;
  attributes.min_rnr_timer = 12;
  attributes.timeout = 14;
  attributes.retry_count = attributes.rnr_retry = 7;
  attributes.access = kLocalWrite | kRemoteWrite;
  return attributes;
}

void spoil(QpAttributes& attributes, std::uint8_t which, std::uint32_t value) {
  const auto byte = static_cast<std::uint8_t>(value);
  switch (which % 21) {
    case 0:
      attributes.path_mtu = byte;
      return;
    case 1:
      attributes.qkey = value;
      return;
    case 2:
      attributes.receive_psn = value;
      return;
    case 3:
      attributes.send_psn = value;
      return;
    case 4:
      attributes.destination_qpn = value;
      return;
    case 5:
      attributes.access = value;
      return;
    case 6:
      attributes.pkey_index = static_cast<std::uint16_t>(value);
      return;
    case 7:
      attributes.max_rd_atomic = byte;
      return;
    case 8:
      attributes.max_dest_rd_atomic = byte;
      return;
    case 9:
      attributes.min_rnr_timer = byte;
      return;
    case 10:
      attributes.port = byte;
      return;
    case 11:
      attributes.timeout = byte;
      return;
    case 12:
      attributes.retry_count = byte;
      return;
    case 13:
      attributes.rnr_retry = byte;
      return;
    case 14:
      attributes.rate_limit = value;
      return;
    case 15:
      attributes.address.destination.bytes[value % 16] = static_cast<std::uint8_t>(value >> 8);
      return;
    case 16:
      attributes.address.sgid_index = byte;
      return;
    case 17:
      attributes.address.is_global = (value & 1) != 0;
      return;
    case 18:
      attributes.address.static_rate = byte;
      return;
    case 19:
      attributes.address.port = byte;
      return;
    default:
      attributes.address.service_level = byte;
      return;
  }
}

// The ranges of verbs.h and of what the device says of itself, written down once more.
bool is_in_range(const QpAttributes& attributes, AttrMask mask, const PortView& port) {
  const auto within = [mask](AttrMask bit, bool holds) { return (mask & bit) == 0 || holds; };
  constexpr std::uint32_t k24Bits = 0xffffff;
  const std::uint32_t mtu = attributes.path_mtu >= 1 && attributes.path_mtu <= 5 ? 128U << attributes.path_mtu : 65'536;
  return within(kAttrPort, attributes.port == port.number) &&
         within(kAttrPkeyIndex, port.pkey_at(attributes.pkey_index).has_value()) && within(kAttrAlternatePath, false) &&
         within(kAttrDestinationQpn, attributes.destination_qpn <= k24Bits) && within(kAttrPathMtu, mtu <= port.mtu) &&
         within(kAttrTimeout, attributes.timeout < 32) && within(kAttrRetryCount, attributes.retry_count < 8) &&
         within(kAttrRnrRetry, attributes.rnr_retry < 8) && within(kAttrMinRnrTimer, attributes.min_rnr_timer < 32) &&
         within(kAttrAddressVector, validate(attributes.address, port, nullptr).has_value());
}

bool same(const QpAttributes& a, const QpAttributes& b) {
  return a.state == b.state && a.path_mtu == b.path_mtu && a.qkey == b.qkey && a.receive_psn == b.receive_psn &&
         a.send_psn == b.send_psn && a.destination_qpn == b.destination_qpn && a.access == b.access &&
         a.address == b.address && a.pkey_index == b.pkey_index && a.max_rd_atomic == b.max_rd_atomic &&
         a.max_dest_rd_atomic == b.max_dest_rd_atomic && a.min_rnr_timer == b.min_rnr_timer && a.port == b.port &&
         a.timeout == b.timeout && a.retry_count == b.retry_count && a.rnr_retry == b.rnr_retry &&
         a.rate_limit == b.rate_limit;
}

void step(Hosts& hosts, QueuePair& qp, Input& input) {
  const QpState from = qp.state();
  QpAttributes attributes = agreeable(hosts);
  attributes.current_state = from;
  attributes.state = static_cast<QpState>(input.u8() % (2 * kQpStates));
  AttrMask mask = input.u32();
  const std::uint8_t count = input.u8();
  if ((count & 0x80) != 0) mask |= kAttrState | edge_of(qp.type(), from, attributes.state).required;
  const bool agreed = (count & 7) == 0;
  for (int i = 0; i < (count & 7); ++i) {
    const std::uint8_t which = input.u8();
    spoil(attributes, which, input.u32());
  }
  const QpState to = (mask & kAttrState) != 0 ? attributes.state : from;
  const bool is_an_edge = check_transition(qp.type(), from, to, mask) == 0;
  const QpAttributes before = qp.query();
  const Status status = qp.modify(attributes, mask, hosts.own.port());
  if (status) {
    require(is_an_edge, "what the table does not have is refused");
    require(is_in_range(attributes, mask, hosts.own.port()), "what is out of range is refused");
    require(qp.state() == to, "it is where it was sent");
  } else {
    const bool may_refuse = !agreed || (mask & kAttrAlternatePath) != 0 || before.send_queue_draining;
    require(!is_an_edge || may_refuse, "what a peer would agree on is done");
    require(status.error().system_errno == EINVAL && !status.error().message.empty(), "a refusal has words");
    require(same(before, qp.query()), "a refusal changes nothing");
  }
}

// Whatever the state: posting gives an answer, and what may leave, leaves.
void use(Hosts& hosts, QueuePair& qp) {
  SendRequest request;
  request.opcode = SendOpcode::kSend;
  const Sge bytes = hosts.own.sge(0, 64);
  request.sges = {&bytes, 1};
  static_cast<void>(qp.post_receive(1, {&bytes, 1}));
  static_cast<void>(qp.post_send(request));
  Transmit packet;
  if (qp.poll_transmit({}, packet)) qp.on_transmitted(1);
  qp.settle_send();
  qp.settle_receive();
  while (hosts.own.send_completions().poll()) continue;
  while (hosts.own.receive_completions().poll()) continue;
}

}  // namespace
}  // namespace verbena::engine

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace verbena::engine;
  Input input({data, size});
  Hosts hosts;
  QueuePair qp(hosts.own.config(100, kQpTypes[input.u8() % kQpTypes.size()]));
  for (std::size_t i = 0; i < kMostSteps && !input.empty(); ++i) {
    step(hosts, qp, input);
    use(hosts, qp);
  }
  return 0;
}
