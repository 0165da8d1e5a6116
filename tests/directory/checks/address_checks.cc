// What an address handle is given and what arrives, and the way back to who sent a datagram.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "checks.h"
#include "end.h"
#include "verbena/grh.h"

namespace verbena::on_device {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 20s;

// A datagram as it came.
struct Arrived {
  ibv_wc completion{};
  std::array<std::byte, 40> grh{};
  std::string text;
};

void send(End& from, ibv_ah* address, std::uint32_t qpn, const std::string& text) {
  if (address == nullptr) throw Broken("no address is ready");
  must(from.lane->send(address, qpn, std::as_bytes(std::span(text))), "send");
  must(from.lane->settle(Deadline::in(kPatience)), "completion");
}

Arrived receive(End& at) {
  std::vector<Arrived> all;
  const bool some = within(kPatience, [&] {
    must(at.lane->receive([&](std::span<const std::byte> payload, auto grh, const ibv_wc& completion) {
      Arrived one{completion, {}, std::string(reinterpret_cast<const char*>(payload.data()), payload.size())};
      std::copy(grh.begin(), grh.end(), one.grh.begin());
      all.push_back(std::move(one));
    }),
         "receive");
    return !all.empty();
  });
  if (!some) throw Broken("nothing came");
  return all.front();
}

// Each field of the destination is in the attributes, the same as the device was given.
void effective(const World& world, Findings& findings) {
  End near(world.near);
  for (const std::string& address : {world.v4, world.v6}) {
    Destination to = destination(address, 0xfff12345);  // what is above 20 bits is ignored
    to.traffic_class = 26 << 2;
    to.service_level = 3;
    to.hop_limit = 7;
    to.static_rate = IBV_RATE_10_GBPS;
    AhHandle handle = must(near.directory.acquire(to, Deadline::in(kPatience)), "acquire");
    const AhLease lease = must(handle.lease(), "lease");
    const EffectiveAddress told = must(near.directory.effective(handle), "effective");
    const ibv_ah_attr given = Ledger::of_this_process().attributes(lease.get());
    const ibv_ah_attr& says = told.attributes;
    // What the device does otherwise is told in words and in the attributes.
    ibv_global_route expected = given.grh;
    if (!told.changes.empty()) expected.hop_limit = says.grh.hop_limit;
    findings.expect(std::memcmp(&expected, &says.grh, sizeof expected) == 0, "the GRH that it tells was given");
    findings.expect_equal<unsigned>(given.grh.hop_limit, 7, "hop limit that was given");
    findings.expect_equal(says.grh.hop_limit != 7, !told.changes.empty(), "another hop limit is told in words");
    findings.expect(given.port_num == says.port_num && given.sl == says.sl && given.is_global == says.is_global &&
                        given.static_rate == says.static_rate && given.dlid == says.dlid,
                    "the rest that it tells was given");
    findings.expect_equal<unsigned>(says.grh.flow_label, 0x12345, "flow label");
    findings.expect_equal<unsigned>(says.grh.traffic_class, 26 << 2, "traffic class");
    findings.expect_equal<unsigned>(says.sl, 3, "service level");
    findings.expect_equal<unsigned>(says.grh.sgid_index, told.source.index, "source index");
    findings.expect(told.source.type == GidType::kRoceV2 && !told.explanation.empty(), "the source and why");
    findings.note(address, told.explanation + "; " + told.rate.text);
    if (!told.changes.empty()) findings.note(address + ", changed by the device", told.changes);
  }
  near.close(findings);
}

// Both headers are read back: IPv4 keeps its time to live and type of service where IPv6 has hop limit and traffic
// class.
void on_the_wire(const World& world, Findings& findings) {
  End near(world.near), far(world.far);
  for (const std::string& address : {world.v4, world.v6}) {
    Destination to = destination(address);
    to.traffic_class = 26 << 2;
    to.hop_limit = 7;
    const AhHandle handle = must(near.directory.acquire(to, Deadline::in(kPatience)), "acquire");
    const ibv_global_route told = must(near.directory.effective(handle), "effective").attributes.grh;
    send(near, near.lane->sender().next(to), far.lane->qpn(), "marked");
    const Arrived arrived = receive(far);
    const bool is_v4 = to.gid.is_ipv4_mapped();
    const auto at = [&](std::size_t byte) { return std::to_integer<unsigned>(arrived.grh[byte]); };
    const unsigned hops = is_v4 ? at(20 + 8) : at(7);
    const unsigned traffic_class = is_v4 ? at(20 + 1) : ((at(0) & 0xf) << 4 | at(1) >> 4);
    findings.expect_equal<unsigned>(hops, told.hop_limit, address + ": hop limit on arrival");
    findings.expect_equal<unsigned>(traffic_class, told.traffic_class, address + ": traffic class on arrival");
    findings.expect_equal<unsigned>(told.traffic_class, 26 << 2, address + ": traffic class");
    findings.note(address + ", hop limit asked for and on arrival", {7, hops});
  }
  near.close(findings);
  far.close(findings);
}

// `address` is the far one's; returns after twenty replies that took one creation.
void reply_to_each(const std::string& address, End& near, End& far, Findings& findings) {
  Destination to = destination(address);
  to.hop_limit = 3;  // what remains of it is no measure for the way back
  must(near.directory.acquire(to, Deadline::in(kPatience)), "acquire");
  const std::uint64_t made = far.directory.stats().created;
  for (int turn = 0; turn < 20; ++turn) {
    send(near, near.lane->sender().next(to), far.lane->qpn(), "question");
    const Arrived question = receive(far);
    const Destination back = must(far.directory.reply_to(question.completion, question.grh), "reply_to");
    ibv_ah* address_of_reply = far.lane->sender().next_reply(question.completion, question.grh);
    findings.expect((address_of_reply == nullptr) == (turn == 0), "the data path finds it from the second time on");
    if (address_of_reply == nullptr) {
      must(far.directory.acquire(back, Deadline::in(kPatience)), "acquire the way back");
      address_of_reply = far.lane->sender().next(back);
    }
    findings.expect(back.hop_limit == 64, "the hop limit is the policy's");
    findings.expect(back.source == to.gid, "from the address it was sent to: " + to_string(back.source));
    send(far, address_of_reply, question.completion.src_qp, "answer");
    const Arrived answer = receive(near);
    findings.expect(answer.text == "answer" && answer.completion.src_qp == far.lane->qpn(), "the answer arrives");
  }
  findings.expect_equal<std::uint64_t>(far.directory.stats().created - made, 1, address + ": creations for 20 replies");
}

void replies(const World& world, Findings& findings) {
  End near(world.near), far(world.far);
  for (const std::string& address : {world.v4, world.v6}) reply_to_each(address, near, far, findings);
  near.close(findings);
  far.close(findings);
}

constexpr std::array kChecks{
    Check{"effective_attributes_are_those_that_the_device_was_given", effective},
    Check{"hop_limit_and_traffic_class_arrive_as_told", on_the_wire},
    Check{"twenty_replies_take_one_creation_in_either_family", replies},
};

}  // namespace

std::span<const Check> address_checks() {
  return kChecks;
}

}  // namespace verbena::on_device
