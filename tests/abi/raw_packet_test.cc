// Raw packet queue pairs and flow steering through the C API, on a wire of the test's own: `one`, port 1 of the device,
// is joined to `other`, port 2.
#include <cstdio>
#include <set>
#include <string>
#include <thread>

#include <endian.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "namespaces/own_namespace.h"
#include "rig.h"

namespace verbena::abi {
namespace {

using testing::in_own_namespace;
using testing::ip;

constexpr std::uint8_t kFar = 2;
constexpr std::uint64_t kSent = 1;

using Mac = std::array<std::uint8_t, 6>;
constexpr Mac kHere{2, 0, 0, 0, 0, 1};
constexpr Mac kThere{2, 0, 0, 0, 0, 2};
constexpr Mac kElsewhere{2, 0, 0, 0, 0, 3};

struct FlowCloser {
  void operator()(ibv_flow* flow) const { EXPECT_EQ(0, ibv_destroy_flow(flow)); }
};
using OwnedFlow = std::unique_ptr<ibv_flow, FlowCloser>;

// Attributes with up to three specifications behind them.
struct FlowWords {
  ibv_flow_attr attributes{};
  std::array<std::byte, 256> specs{};

  explicit FlowWords(ibv_flow_attr_type type = IBV_FLOW_ATTR_NORMAL, std::uint8_t port = kFar) {
    attributes.type = type;
    attributes.port = port;
    attributes.size = sizeof attributes;
  }
  template <class Spec>
  FlowWords& add(Spec spec, ibv_flow_spec_type type) {
    spec.type = type;
    spec.size = sizeof spec;
    std::memcpy(specs.data() + attributes.size - sizeof attributes, &spec, sizeof spec);
    attributes.size = static_cast<std::uint16_t>(attributes.size + sizeof spec);
    ++attributes.num_of_specs;
    return *this;
  }
  FlowWords& to(const Mac& mac) {
    ibv_flow_spec_eth spec{};
    std::copy(mac.begin(), mac.end(), spec.val.dst_mac);
    std::fill(std::begin(spec.mask.dst_mac), std::end(spec.mask.dst_mac), std::uint8_t{0xff});
    return add(spec, IBV_FLOW_SPEC_ETH);
  }
  FlowWords& udp(std::uint16_t port) {
    ibv_flow_spec_tcp_udp spec{};
    spec.val.dst_port = htobe16(port);
    spec.mask.dst_port = 0xffff;
    return add(spec, IBV_FLOW_SPEC_UDP);
  }
  FlowWords& priority(std::uint16_t priority) {
    attributes.priority = priority;
    return *this;
  }
};
static_assert(offsetof(FlowWords, specs) == sizeof(ibv_flow_attr));

std::string mac_text(const Mac& mac) {
  return {mac.begin(), mac.end()};
}

// An Ethernet frame of a type that no protocol here has.
std::string frame_to(const Mac& mac, const std::string& text, const std::string& type = "\x88\xb5") {
  return mac_text(mac) + mac_text(kHere) + type + text;
}

std::string udp_to(std::uint16_t port, const std::string& text) {
  std::string packet{"\x45\0\0\0\0\0\x40\0\x40\x11\0\0\x0a\x09\0\x01\x0a\x09\0\x02", 20};
  packet += std::string{"\x12\x34", 2} + static_cast<char>(port >> 8) + static_cast<char>(port) + std::string(4, '\0');
  return frame_to(kThere, packet + text, std::string("\x08\x00", 2));
}

class RawRig final : public Rig {
 public:
  explicit RawRig(const char* devices = "one+other") {
    ::setenv("VERBENA_DEVICES", devices, 1);
    SetUp();
    sends_.reset(ibv_create_cq(context_.get(), 64, nullptr, nullptr, 0));
    EXPECT_TRUE(sends_);
  }
  void TestBody() override {}

  ibv_context* context() { return context_.get(); }
  ibv_pd* pd() { return pd_.get(); }
  ibv_cq* cq() { return cq_.get(); }

  Owned<ibv_qp> create(ibv_qp_type type = IBV_QPT_RAW_PACKET, ibv_cq* cq = nullptr) {
    ibv_qp_init_attr attributes = ud_attributes(cq == nullptr ? cq_.get() : cq);
    attributes.send_cq = sends_.get();
    attributes.qp_type = type;
    return Owned<ibv_qp>(ibv_create_qp(pd_.get(), &attributes));
  }
  Owned<ibv_qp> ready(std::uint8_t port, ibv_cq* cq = nullptr) {
    auto qp = create(IBV_QPT_RAW_PACKET, cq);
    EXPECT_TRUE(qp) << errno;
    if (!qp) return qp;
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = port;
    EXPECT_EQ(0, ibv_modify_qp(qp.get(), &attributes, IBV_QP_STATE | IBV_QP_PORT));
    EXPECT_EQ(0, to_state(qp.get(), IBV_QPS_RTR));
    EXPECT_EQ(0, to_state(qp.get(), IBV_QPS_RTS));
    return qp;
  }
  OwnedFlow flow(ibv_qp* qp, FlowWords words) {
    OwnedFlow made(ibv_create_flow(qp, &words.attributes));
    EXPECT_TRUE(made) << errno;
    return made;
  }
  int refused(ibv_qp* qp, FlowWords words) {
    errno = 0;
    ibv_flow* const made = ibv_create_flow(qp, &words.attributes);
    EXPECT_EQ(nullptr, made);
    return errno;
  }

  // Sends it and waits until it is gone.
  ibv_wc_status send(ibv_qp* qp, const std::string& frame, unsigned flags = 0) {
    std::memcpy(sending(), frame.data(), frame.size());
    ibv_sge sge = send_sge(static_cast<std::uint32_t>(frame.size()));
    ibv_send_wr request = send_request(&sge, nullptr, 0, kSent);
    request.send_flags |= flags;
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(0, ibv_post_send(qp, &request, &bad));
    const auto done = take_completions(sends_.get(), 1);
    EXPECT_EQ(kSent, done[0].wr_id);
    return done[0].status;
  }
  int expect(ibv_qp* qp, std::uint64_t id, std::uint32_t length = 2048) {
    return post_receive(qp, id, length, id % 4 * 2048);
  }
  ibv_wc next() {
    const auto taken = take_completions(cq_.get(), 1);
    return taken.empty() ? ibv_wc{} : taken[0];
  }
  // What the receive `id` was filled with, which must be the next to complete.
  std::string received(std::uint64_t id) {
    const ibv_wc done = next();
    EXPECT_EQ(id, done.wr_id);
    EXPECT_EQ(IBV_WC_SUCCESS, done.status);
    EXPECT_EQ(IBV_WC_RECV, done.opcode);
    EXPECT_EQ(0U, done.wc_flags);
    return text_at(id, done.byte_len);
  }
  std::string text_at(std::uint64_t id, std::size_t size) {
    return {reinterpret_cast<const char*>(receiving() + id % 4 * 2048), size};
  }
  void wait_for(std::uint8_t port, ibv_port_state state) {
    ibv_port_attr attributes{};
    for (int round = 0; round < 500; ++round) {
      EXPECT_EQ(0, ibv_query_port(context_.get(), port, &attributes));
      if (attributes.state == state) return;
      ::usleep(20'000);
    }
    ADD_FAILURE() << "port " << int{port} << " is in state " << attributes.state;
  }
  // Whatever is there now is all that comes.
  bool is_quiet() {
    ibv_wc completion{};
    for (int round = 0; round < 20'000; ++round) {
      if (ibv_poll_cq(cq_.get(), 1, &completion) != 0) return false;
    }
    return true;
  }

 private:
  Owned<ibv_cq> sends_;
};

void on_a_wire(const std::function<void(RawRig&)>& body, const char* devices = "one+other") {
  in_own_namespace([&] {
    testing::add_wire();
    testing::wait_until_up("one");
    testing::wait_until_up("other");
    RawRig rig(devices);
    if (!::testing::Test::HasFailure()) body(rig);
  });
}

TEST(RawPacket, AFrameArrivesAsItWasSent) {
  on_a_wire([](RawRig& rig) {
    auto from = rig.ready(kPort);
    auto to = rig.ready(kFar);
    const auto flow = rig.flow(to.get(), FlowWords().to(kThere));
    ASSERT_EQ(0, rig.expect(to.get(), 6));
    ASSERT_EQ(0, rig.expect(to.get(), 7));
    const std::string frame = frame_to(kThere, "hello, wire");
    EXPECT_EQ(IBV_WC_SUCCESS, rig.send(from.get(), frame));
    EXPECT_EQ(frame, rig.received(6));
    const std::string short_one = frame_to(kThere, "inline");
    EXPECT_EQ(IBV_WC_SUCCESS, rig.send(from.get(), short_one, IBV_SEND_INLINE));
    EXPECT_EQ(short_one, rig.received(7));
  });
}

TEST(RawPacket, NothingArrivesWithoutAFlow) {
  on_a_wire([](RawRig& rig) {
    auto from = rig.ready(kPort);
    auto to = rig.ready(kFar);
    ASSERT_EQ(0, rig.expect(to.get(), 6));
    rig.send(from.get(), frame_to(kThere, "before"));
    EXPECT_TRUE(rig.is_quiet());
    auto flow = rig.flow(to.get(), FlowWords().to(kThere));
    rig.send(from.get(), frame_to(kElsewhere, "for somebody else"));
    rig.send(from.get(), frame_to(kThere, "during"));
    EXPECT_EQ(frame_to(kThere, "during"), rig.received(6));
    flow.reset();
    ASSERT_EQ(0, rig.expect(to.get(), 7));
    rig.send(from.get(), frame_to(kThere, "after"));
    EXPECT_TRUE(rig.is_quiet());
  });
}

TEST(RawPacket, RulesSteerByPriorityAndPort) {
  on_a_wire([](RawRig& rig) {
    auto from = rig.ready(kPort);
    auto special = rig.ready(kFar);
    auto rest = rig.ready(kFar);
    const auto all = rig.flow(rest.get(), FlowWords().to(kThere).priority(5));
    const auto some = rig.flow(special.get(), FlowWords().udp(9000).priority(1));
    ASSERT_EQ(0, rig.expect(special.get(), 4));
    ASSERT_EQ(0, rig.expect(rest.get(), 5));
    rig.send(from.get(), udp_to(9000, "special"));
    EXPECT_EQ(udp_to(9000, "special"), rig.received(4));
    rig.send(from.get(), udp_to(9001, "rest"));
    EXPECT_EQ(udp_to(9001, "rest"), rig.received(5));
    EXPECT_TRUE(rig.is_quiet());
  });
}

TEST(RawPacket, ADropKeepsFramesAndASnifferSeesThem) {
  on_a_wire([](RawRig& rig) {
    auto from = rig.ready(kPort);
    auto sniffer = rig.ready(kFar);
    auto other = rig.ready(kFar);
    const auto all = rig.flow(other.get(), FlowWords().to(kThere).priority(5));
    const auto drop =
        rig.flow(other.get(), FlowWords().udp(9000).add(ibv_flow_spec_action_drop{}, IBV_FLOW_SPEC_ACTION_DROP));
    FlowWords everything(IBV_FLOW_ATTR_SNIFFER);
    everything.attributes.size = 0;  // as perftest leaves it
    const auto sniff = rig.flow(sniffer.get(), everything);
    ASSERT_EQ(0, rig.expect(other.get(), 4));
    for (std::uint64_t id = 100; id < 116; ++id) ASSERT_EQ(0, rig.expect(sniffer.get(), id));
    rig.send(from.get(), udp_to(9000, "dropped"));
    // The kernel talks on the wire, too, and the sniffer hears that.
    bool seen = false;
    for (int i = 0; i < 16 && !seen; ++i) {
      const ibv_wc done = rig.next();
      ASSERT_GE(done.wr_id, 100U);
      seen = rig.text_at(done.wr_id, done.byte_len) == udp_to(9000, "dropped");
    }
    EXPECT_TRUE(seen);
    rig.send(from.get(), udp_to(9001, "rest"));
    ibv_wc done{};
    for (int i = 0; i < 16 && done.wr_id != 4; ++i) done = rig.next();
    ASSERT_EQ(4U, done.wr_id);
    EXPECT_EQ(udp_to(9001, "rest"), rig.text_at(4, done.byte_len)) << "the dropped one did not come before it";
  });
}

TEST(RawPacket, ATagIsPartOfTheFrameAndOfRules) {
  on_a_wire([](RawRig& rig) {
    auto from = rig.ready(kPort);
    auto to = rig.ready(kFar);
    ibv_flow_spec_eth spec{};
    spec.val.vlan_tag = htobe16(100);
    spec.mask.vlan_tag = htobe16(0xfff);
    const auto flow = rig.flow(to.get(), FlowWords().add(spec, IBV_FLOW_SPEC_ETH));
    ASSERT_EQ(0, rig.expect(to.get(), 6));
    const auto tagged = [](char id) {
      return frame_to(kThere, "tagged", std::string{'\x81', '\0', '\x60', id, '\x88', '\xb5'});
    };
    rig.send(from.get(), frame_to(kThere, "plain"));
    rig.send(from.get(), tagged(99));
    rig.send(from.get(), tagged(100));
    EXPECT_EQ(tagged(100), rig.received(6));
    EXPECT_TRUE(rig.is_quiet());
  });
}

TEST(RawPacket, WhoeverSleepsIsWoken) {
  on_a_wire([](RawRig& rig) {
    Owned<ibv_comp_channel> channel(ibv_create_comp_channel(rig.context()));
    Owned<ibv_cq> cq(ibv_create_cq(rig.context(), 16, nullptr, channel.get(), 0));
    ASSERT_TRUE(cq);
    auto from = rig.ready(kPort);
    auto to = rig.ready(kFar, cq.get());
    const auto flow = rig.flow(to.get(), FlowWords().to(kThere));
    ASSERT_EQ(0, rig.expect(to.get(), 6));
    ASSERT_EQ(0, ibv_req_notify_cq(cq.get(), 0));
    rig.send(from.get(), frame_to(kThere, "wake up"));
    pollfd event{channel->fd, POLLIN, 0};
    ASSERT_EQ(1, ::poll(&event, 1, 10'000));
    ibv_cq* which = nullptr;
    void* context = nullptr;
    ASSERT_EQ(0, ibv_get_cq_event(channel.get(), &which, &context));
    ibv_ack_cq_events(which, 1);
    ibv_wc done{};
    ASSERT_EQ(1, ibv_poll_cq(cq.get(), 1, &done));
    EXPECT_EQ(6U, done.wr_id);
  });
}

TEST(RawPacket, AReceiveThatIsTooSmallEndsTheQueuePair) {
  on_a_wire([](RawRig& rig) {
    auto from = rig.ready(kPort);
    auto to = rig.ready(kFar);
    const auto flow = rig.flow(to.get(), FlowWords().to(kThere));
    ASSERT_EQ(0, rig.expect(to.get(), 6, 20));
    ASSERT_EQ(0, rig.expect(to.get(), 7));
    rig.send(from.get(), frame_to(kThere, "seven more than fit"));
    const ibv_wc failed = rig.next();
    EXPECT_EQ(6U, failed.wr_id);
    EXPECT_EQ(IBV_WC_LOC_LEN_ERR, failed.status);
    EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, rig.next().status);
    ibv_qp_attr attributes{};
    ibv_qp_init_attr init{};
    ASSERT_EQ(0, ibv_query_qp(to.get(), &attributes, IBV_QP_STATE, &init));
    EXPECT_EQ(IBV_QPS_ERR, attributes.qp_state);
  });
}

TEST(RawPacket, AFrameAboveTheMtuFailsAtTheSender) {
  on_a_wire([](RawRig& rig) {
    auto from = rig.ready(kPort);
    EXPECT_EQ(IBV_WC_SUCCESS, rig.send(from.get(), frame_to(kThere, std::string(1500, 'x'))));
    EXPECT_EQ(IBV_WC_LOC_LEN_ERR, rig.send(from.get(), frame_to(kThere, std::string(1505, 'x'))));
    EXPECT_EQ(0, to_state(from.get(), IBV_QPS_RTS));  // from SQE
    EXPECT_EQ(IBV_WC_SUCCESS, rig.send(from.get(), frame_to(kThere, "again")));
    ip("link set one mtu 2000");
    ip("link set other mtu 2000");
    ibv_wc_status status = IBV_WC_GENERAL_ERR;
    for (int round = 0; round < 100 && status != IBV_WC_SUCCESS; ++round) {
      ::usleep(20'000);  // until the device has heard of it
      status = rig.send(from.get(), frame_to(kThere, std::string(1505, 'x')));
      EXPECT_TRUE(status == IBV_WC_SUCCESS || to_state(from.get(), IBV_QPS_RTS) == 0);
    }
    EXPECT_EQ(IBV_WC_SUCCESS, status);
  });
}

std::string promiscuity_of_other() {
  const std::unique_ptr<FILE, int (*)(FILE*)> said(::popen("ip -d link show other", "r"), &::pclose);
  std::string words(4096, '\0');
  words.resize(std::fread(words.data(), 1, words.size(), said.get()));
  const auto at = words.find("promiscuity ");
  EXPECT_NE(std::string::npos, at) << words;
  return at == std::string::npos ? words : words.substr(at, sizeof "promiscuity ");
}

TEST(RawPacket, AnInterfaceThatIsMadeAnewHasTheSameQueuePairsAndFlows) {
  on_a_wire([](RawRig& rig) {
    auto from = rig.ready(kPort);
    auto to = rig.ready(kFar);
    auto rest = rig.ready(kFar);
    const auto flow = rig.flow(to.get(), FlowWords().to(kThere));
    const auto all = rig.flow(rest.get(), FlowWords(IBV_FLOW_ATTR_ALL_DEFAULT));
    ASSERT_EQ(0, rig.expect(to.get(), 6));
    ASSERT_EQ(0, rig.expect(to.get(), 7));
    const std::string let_through = promiscuity_of_other();
    ip("link del one");
    rig.wait_for(kPort, IBV_PORT_DOWN);
    rig.wait_for(kFar, IBV_PORT_DOWN);
    EXPECT_EQ(IBV_WC_SUCCESS, rig.send(from.get(), frame_to(kThere, std::string(1500, 'x')))) << "none is too long now";
    auto late = rig.ready(kPort);
    EXPECT_EQ(ENODEV, rig.refused(late.get(), FlowWords(IBV_FLOW_ATTR_NORMAL, kPort).to(kHere)));
    testing::add_wire();
    testing::wait_until_up("one");
    testing::wait_until_up("other");
    rig.wait_for(kPort, IBV_PORT_ACTIVE);
    rig.wait_for(kFar, IBV_PORT_ACTIVE);
    EXPECT_EQ(let_through, promiscuity_of_other()) << "what the flows ask of the interface";
    EXPECT_EQ(IBV_WC_SUCCESS, rig.send(from.get(), frame_to(kThere, "again")));
    EXPECT_EQ(frame_to(kThere, "again"), rig.received(6));
    EXPECT_EQ(IBV_WC_SUCCESS, rig.send(late.get(), frame_to(kThere, "and another")));
    EXPECT_EQ(frame_to(kThere, "and another"), rig.received(7));
  });
}

// One port that nothing can be done with leaves the others.
TEST(RawPacket, APortThatIsGoneDoesNotKeepOthersFromFrames) {
  in_own_namespace([] {
    testing::add_wire();
    ip("link add third type veth peer name fourth");
    ip("link set third up");
    ip("link set fourth up");
    for (const char* name : {"one", "other", "third"}) testing::wait_until_up(name);
    RawRig rig("one+other+third");
    ip("link del third");
    rig.wait_for(3, IBV_PORT_DOWN);
    auto from = rig.ready(kPort);
    auto to = rig.ready(kFar);
    const auto flow = rig.flow(to.get(), FlowWords().to(kThere));
    ASSERT_EQ(0, rig.expect(to.get(), 6));
    EXPECT_EQ(IBV_WC_SUCCESS, rig.send(from.get(), frame_to(kThere, "hello")));
    EXPECT_EQ(frame_to(kThere, "hello"), rig.received(6));
  });
}

TEST(RawPacket, APortWithoutEthernetFramesIsRefusedAndTheOtherServes) {
  in_own_namespace([] {
    if (std::system("ip tuntap add dev flat mode tun 2>/dev/null") != 0) return;  // not in every container
    ip("link set flat up");
    testing::add_wire();
    testing::wait_until_up("one");
    RawRig rig("one+flat");
    auto qp = rig.create();
    ASSERT_TRUE(qp) << errno;
    EXPECT_EQ(EOPNOTSUPP, rig.refused(qp.get(), FlowWords(IBV_FLOW_ATTR_NORMAL, kFar).to(kThere)));
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = kFar;
    EXPECT_EQ(EOPNOTSUPP, ibv_modify_qp(qp.get(), &attributes, IBV_QP_STATE | IBV_QP_PORT));
    auto from = rig.ready(kPort);
    EXPECT_EQ(IBV_WC_SUCCESS, rig.send(from.get(), frame_to(kThere, "hello")));
  });
}

TEST(RawPacket, AQueuePairWithFlowsIsBusy) {
  on_a_wire([](RawRig& rig) {
    auto qp = rig.ready(kFar);
    ibv_flow* const flow = rig.flow(qp.get(), FlowWords().to(kThere)).release();
    ASSERT_NE(nullptr, flow);
    EXPECT_EQ(rig.context(), flow->context);
    EXPECT_EQ(EBUSY, ibv_destroy_qp(qp.get()));
    const std::uint32_t handle = std::exchange(flow->handle, 0xdeadbeef);
    EXPECT_EQ(ENOENT, ibv_destroy_flow(flow));
    flow->handle = handle;
    EXPECT_EQ(0, ibv_destroy_flow(flow));
    EXPECT_EQ(0, ibv_destroy_qp(qp.release()));
  });
}

TEST(RawPacket, AFlowIsForAPortThatTheQueuePairIsOn) {
  on_a_wire([](RawRig& rig) {
    auto qp = rig.ready(kFar);
    for (const std::uint8_t port : {std::uint8_t{0}, kPort, std::uint8_t{3}, std::uint8_t{255}}) {
      EXPECT_EQ(EINVAL, rig.refused(qp.get(), FlowWords(IBV_FLOW_ATTR_NORMAL, port).to(kThere))) << int{port};
    }
    FlowWords cut = FlowWords().to(kThere);
    cut.attributes.size = static_cast<std::uint16_t>(cut.attributes.size - 1);
    EXPECT_EQ(EINVAL, rig.refused(qp.get(), cut));
    EXPECT_EQ(EOPNOTSUPP, rig.refused(qp.get(), FlowWords().add(ibv_flow_spec_tunnel{}, IBV_FLOW_SPEC_VXLAN_TUNNEL)));
    auto datagrams = rig.create(IBV_QPT_UD);
    EXPECT_EQ(EOPNOTSUPP, rig.refused(datagrams.get(), FlowWords().to(kThere)));
    auto connection = rig.create(IBV_QPT_RC);
    EXPECT_EQ(EINVAL, rig.refused(connection.get(), FlowWords().to(kThere)));
  });
}

TEST(RawPacket, TheRightIsAskedForOfTheThreadThatCalls) {
  on_a_wire([](RawRig& rig) {
    auto qp = rig.ready(kFar);
    std::thread([&] {
      __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
      std::array<__user_cap_data_struct, 2> data{};
      EXPECT_EQ(0, ::syscall(SYS_capget, &header, data.data()));
      data[0].effective &= ~(1U << CAP_NET_RAW);
      EXPECT_EQ(0, ::syscall(SYS_capset, &header, data.data()));
      errno = 0;
      EXPECT_EQ(nullptr, rig.create());
      EXPECT_EQ(EPERM, errno);
      EXPECT_EQ(EPERM, rig.refused(qp.get(), FlowWords().to(kThere)));
    }).join();
  });
}

TEST(RawPacket, OnlyPlainSendsAreTakenAndPacedWhereAsked) {
  on_a_wire([](RawRig& rig) {
    auto qp = rig.ready(kPort);
    ibv_sge sge{};
    ibv_send_wr* bad = nullptr;
    ibv_send_wr request{};
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    EXPECT_EQ(EINVAL, ibv_post_send(qp.get(), &request, &bad)) << "shorter than an Ethernet header";
    EXPECT_EQ(&request, bad);
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTS;
    attributes.rate_limit = 100;
    EXPECT_EQ(EINVAL, ibv_modify_qp(qp.get(), &attributes, IBV_QP_STATE | IBV_QP_RATE_LIMIT));
    attributes.rate_limit = 8'000;  // a frame of 1000 bytes in a millisecond
    EXPECT_EQ(0, ibv_modify_qp(qp.get(), &attributes, IBV_QP_STATE | IBV_QP_RATE_LIMIT));
    timespec begin{};
    timespec end{};
    ::clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < 20; ++i) rig.send(qp.get(), frame_to(kThere, std::string(986, 'x')));
    ::clock_gettime(CLOCK_MONOTONIC, &end);
    const auto ms = (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1'000'000;
    EXPECT_GE(ms, 18) << "no faster than the limit";
  });
}

TEST(RawPacket, TheDeviceSaysWhatItHas) {
  on_a_wire([](RawRig& rig) {
    ibv_device_attr_ex attributes{};
    ASSERT_EQ(0, ibv_query_device_ex(rig.context(), nullptr, &attributes));
    EXPECT_NE(0U, attributes.orig_attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING);
    EXPECT_EQ(0U, attributes.raw_packet_caps);
    EXPECT_EQ(2'000U, attributes.packet_pacing_caps.qp_rate_limit_min);
    EXPECT_EQ(1U << IBV_QPT_RAW_PACKET, attributes.packet_pacing_caps.supported_qpts);
  });
}

TEST(RawPacket, AnInfinibandPortHasNone) {
  on_a_wire(
      [](RawRig& rig) {
        errno = 0;
        EXPECT_EQ(nullptr, rig.create());
        EXPECT_EQ(EOPNOTSUPP, errno);
        ibv_device_attr_ex attributes{};
        ASSERT_EQ(0, ibv_query_device_ex(rig.context(), nullptr, &attributes));
        EXPECT_EQ(0U, attributes.orig_attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING);
      },
      "one/link_layer=infiniband/lid=3");
}

TEST(RawPacket, AChildOfForkIsRefusedAndDisturbsNobody) {
  on_a_wire([](RawRig& rig) {
    auto from = rig.ready(kPort);
    auto to = rig.ready(kFar);
    auto flow = rig.flow(to.get(), FlowWords().to(kThere));
    ASSERT_EQ(0, rig.expect(to.get(), 6));
    const pid_t child = ::fork();
    if (child == 0) {
      const bool refused = rig.refused(to.get(), FlowWords().to(kElsewhere)) == ENODEV &&
                           ibv_destroy_flow(flow.get()) == ENODEV && ibv_destroy_qp(to.get()) == ENODEV;
      ::_exit(refused ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(child, ::waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
    rig.send(from.get(), frame_to(kThere, "still here"));
    EXPECT_EQ(frame_to(kThere, "still here"), rig.received(6));
  });
}

}  // namespace
}  // namespace verbena::abi
