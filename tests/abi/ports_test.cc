// A device of two ports through the C API: each port has its own tables, state and events, and a queue pair belongs to
// the one of its INIT.
#include <cstdio>
#include <fstream>
#include <regex>
#include <string>

#include <net/if.h>
#include <poll.h>
#include <unistd.h>

#include "namespaces/own_namespace.h"
#include "rig.h"

namespace verbena::abi {
namespace {

using testing::in_own_namespace;
using testing::ip;

constexpr std::uint8_t kOther = 2;

// `one` with 10.9.1.1 and `two` with 10.9.2.1, each with an end of a cable that nobody else has.
void add_interfaces() {
  ip("link set lo up");
  for (const std::string number : {"1", "2"}) {
    const std::string name = number == "1" ? "one" : "two";
    ip("link add " + name + " type veth peer name far" + number);
    ip("link set far" + number + " up");
    ip("link set " + name + " up");
    ip("address add 10.9." + number + ".1/24 dev " + name);
  }
}

std::uint8_t last_byte_but_one(const ibv_gid& gid) {
  return gid.raw[14];
}

// Of the address that the interface was given.
ibv_gid_entry ipv4_gid(ibv_context* context, std::uint8_t port) {
  ibv_gid_entry entry{};
  for (std::uint32_t index = 0; index < 16; ++index) {
    if (ibv_query_gid_ex(context, port, index, &entry, 0) == 0 && entry.gid.raw[10] == 0xff) return entry;
  }
  ADD_FAILURE() << "port " << int{port} << " has no IPv4 address";
  return {};
}

// Two queue pairs of one protection domain, which are ready on port 1 and port 2.
class TwoPorts final : public Rig {
 public:
  explicit TwoPorts(const char* devices = "one+two", bool infiniband = false) {
    ::setenv("VERBENA_DEVICES", devices, 1);
    SetUp();
    for (std::uint8_t port : {kPort, kOther}) {
      gids_[port] = infiniband ? first_gid(context_.get(), port) : ipv4_gid(context_.get(), port);
      qps_[port] = make_qp();
      to_ready(qps_[port].get(), kQkey, port);
    }
  }
  void TestBody() override {}

  ibv_context* context() { return context_.get(); }
  ibv_pd* pd() { return pd_.get(); }
  ibv_cq* cq() { return cq_.get(); }
  ibv_qp* qp(std::uint8_t port) { return qps_[port].get(); }
  const ibv_gid_entry& gid(std::uint8_t port) { return gids_[port]; }
  Owned<ibv_qp> make_another() { return make_qp(); }
  int post(ibv_qp* from, ibv_ah* ah, std::uint32_t qpn) { return post_send(from, ah, qpn, 32); }
  int expect_at(ibv_qp* at) { return post_receive(at, 7, 1024); }

  // From a port to an address.
  ibv_ah_attr path(std::uint8_t from, const ibv_gid& to) {
    ibv_ah_attr attributes = address_of(gids_[from]);
    attributes.grh.dgid = to;
    return attributes;
  }
  Owned<ibv_ah> make_path(std::uint8_t from, const ibv_gid& to) {
    ibv_ah_attr attributes = path(from, to);
    return Owned<ibv_ah>(ibv_create_ah(pd_.get(), &attributes));
  }
  ibv_wc only_completion() {
    const auto taken = take_completions(cq_.get(), 1);
    return taken.empty() ? ibv_wc{} : taken[0];
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
  std::array<ibv_gid_entry, 3> gids_{};
  std::array<Owned<ibv_qp>, 3> qps_;
};

void test_of_two_ports(const std::function<void(TwoPorts&)>& body) {
  in_own_namespace([&] {
    add_interfaces();
    TwoPorts ports;
    if (!::testing::Test::HasFailure()) body(ports);
  });
}

TEST(Ports, EachHasItsOwnTables) {
  test_of_two_ports([](TwoPorts& ports) {
    ibv_device_attr device{};
    ASSERT_EQ(0, ibv_query_device(ports.context(), &device));
    EXPECT_EQ(2, device.phys_port_cnt);
    ibv_port_attr attributes{};
    for (std::uint8_t port : {kPort, kOther}) {
      EXPECT_EQ(0, ibv_query_port(ports.context(), port, &attributes));
      EXPECT_EQ(IBV_PORT_ACTIVE, attributes.state);
      EXPECT_EQ(port, ports.gid(port).port_num);
      EXPECT_EQ(::if_nametoindex(port == kPort ? "one" : "two"), ports.gid(port).ndev_ifindex);
      EXPECT_EQ(port, last_byte_but_one(ports.gid(port).gid));
      ibv_gid gid{};
      EXPECT_EQ(0, ibv_query_gid(ports.context(), port, static_cast<int>(ports.gid(port).gid_index), &gid));
      EXPECT_EQ(0, std::memcmp(&gid, &ports.gid(port).gid, sizeof gid));
    }
    for (const std::uint8_t port : {std::uint8_t{0}, std::uint8_t{3}, std::uint8_t{255}}) {
      EXPECT_EQ(EINVAL, ibv_query_port(ports.context(), port, &attributes));
      ibv_gid_entry entry{};
      EXPECT_EQ(EINVAL, ibv_query_gid_ex(ports.context(), port, 0, &entry, 0));
      __be16 pkey = 0;
      EXPECT_EQ(-1, ibv_query_pkey(ports.context(), port, 0, &pkey));
    }
  });
}

TEST(Ports, SysfsShowsEachWithItsInterface) {
  test_of_two_ports([](TwoPorts& ports) {
    const std::string folder = std::string(ports.context()->device->ibdev_path) + "/ports/2/gid_attrs/ndevs/";
    std::FILE* const file = std::fopen((folder + std::to_string(ports.gid(kOther).gid_index)).c_str(), "r");
    ASSERT_NE(nullptr, file);
    std::array<char, 16> text{};
    EXPECT_NE(nullptr, std::fgets(text.data(), text.size(), file));
    std::fclose(file);
    EXPECT_STREQ("two\n", text.data());
  });
}

TEST(Ports, DatagramsGoFromOneToTheOtherAndBack) {
  test_of_two_ports([](TwoPorts& ports) {
    for (const auto& [from, to] : {std::pair{kPort, kOther}, std::pair{kOther, kPort}, std::pair{kOther, kOther}}) {
      const auto ah = ports.make_path(from, ports.gid(to).gid);
      ASSERT_TRUE(ah);
      const auto receiver = ports.make_another();
      to_ready(receiver.get(), kQkey, to);
      ASSERT_EQ(0, ports.expect_at(receiver.get()));
      ASSERT_EQ(0, ports.post(ports.qp(from), ah.get(), receiver->qp_num));
      for (const ibv_wc& completion : take_completions(ports.cq(), 2)) {
        EXPECT_EQ(IBV_WC_SUCCESS, completion.status) << int{from} << " to " << int{to};
      }
    }
  });
}

TEST(Ports, AnAddressHandleOfTheOtherPortIsRefused) {
  test_of_two_ports([](TwoPorts& ports) {
    const auto ah = ports.make_path(kOther, ports.gid(kOther).gid);
    ASSERT_TRUE(ah);
    ASSERT_EQ(0, ports.post(ports.qp(kPort), ah.get(), ports.qp(kOther)->qp_num));
    EXPECT_EQ(IBV_WC_LOC_QP_OP_ERR, ports.only_completion().status);
    ibv_qp_attr attributes{};
    ibv_qp_init_attr init{};
    ASSERT_EQ(0, ibv_query_qp(ports.qp(kPort), &attributes, IBV_QP_STATE, &init));
    EXPECT_EQ(IBV_QPS_SQE, attributes.qp_state);
  });
}

TEST(Ports, AnAddressHandleNeedsAPortThatIsThere) {
  test_of_two_ports([](TwoPorts& ports) {
    for (const std::uint8_t port : {std::uint8_t{0}, std::uint8_t{3}}) {
      ibv_ah_attr attributes = ports.path(kPort, ports.gid(kPort).gid);
      attributes.port_num = port;
      EXPECT_EQ(nullptr, ibv_create_ah(ports.pd(), &attributes));
      EXPECT_EQ(EINVAL, errno);
    }
  });
}

// How many of a kind this process dropped, as the tool tells it.
std::uint64_t dropped(const std::string& kind) {
  std::FILE* const told =
      ::popen((std::string(VERBENA_TOOL " drops --json --pid ") + std::to_string(::getpid())).c_str(), "r");
  std::string text;
  for (int c = std::fgetc(told); c != EOF; c = std::fgetc(told)) text.push_back(static_cast<char>(c));
  EXPECT_EQ(0, ::pclose(told)) << text;
  std::smatch found;
  if (std::regex_search(text, found, std::regex("\"" + kind + "\": *([0-9]+)"))) return std::stoull(found[1]);
  ADD_FAILURE() << kind << " is not in " << text;
  return 0;
}

TEST(Ports, ADatagramToTheOtherPortsAddressDoesNotArrive) {
  test_of_two_ports([](TwoPorts& ports) {
    const auto ah = ports.make_path(kPort, ports.gid(kPort).gid);
    ASSERT_TRUE(ah);
    ASSERT_EQ(0, ports.expect_at(ports.qp(kOther)));
    ASSERT_EQ(0, ports.post(ports.qp(kPort), ah.get(), ports.qp(kOther)->qp_num));
    EXPECT_EQ(IBV_WC_SUCCESS, ports.only_completion().status);
    EXPECT_TRUE(ports.is_quiet());
    EXPECT_EQ(1U, dropped("wrong_port"));
  });
}

TEST(Ports, AQueuePairMovesUntilItIsReady) {
  test_of_two_ports([](TwoPorts& ports) {
    const auto qp = ports.make_another();
    EXPECT_EQ(EINVAL, to_init(qp.get(), kQkey, 3));
    ASSERT_EQ(0, to_init(qp.get(), kQkey, kPort));
    ASSERT_EQ(0, to_init(qp.get(), kQkey, kOther));
    ASSERT_EQ(0, to_state(qp.get(), IBV_QPS_RTR));
    ASSERT_EQ(0, to_state(qp.get(), IBV_QPS_RTS, IBV_QP_SQ_PSN));
    ibv_qp_attr attributes{};
    ibv_qp_init_attr init{};
    ASSERT_EQ(0, ibv_query_qp(qp.get(), &attributes, IBV_QP_PORT, &init));
    EXPECT_EQ(kOther, attributes.port_num);
    const auto ah = ports.make_path(kOther, ports.gid(kPort).gid);
    ASSERT_EQ(0, ports.expect_at(ports.qp(kPort)));
    ASSERT_EQ(0, ports.post(qp.get(), ah.get(), ports.qp(kPort)->qp_num));
    for (const ibv_wc& completion : take_completions(ports.cq(), 2)) EXPECT_EQ(IBV_WC_SUCCESS, completion.status);
    ASSERT_EQ(0, to_state(qp.get(), IBV_QPS_RESET));
    to_ready(qp.get(), kQkey, kPort);
    ASSERT_EQ(0, ports.post(qp.get(), ah.get(), ports.qp(kPort)->qp_num));
    EXPECT_EQ(IBV_WC_LOC_QP_OP_ERR, ports.only_completion().status);
  });
}

Owned<ibv_qp> make_connection(TwoPorts& ports, std::uint8_t port) {
  ibv_qp_init_attr init = ud_attributes(ports.cq());
  init.qp_type = IBV_QPT_RC;
  Owned<ibv_qp> qp(ibv_create_qp(ports.pd(), &init));
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = port;
  EXPECT_EQ(0,
            ibv_modify_qp(qp.get(), &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
  return qp;
}

int connect(ibv_qp* qp, const ibv_ah_attr& path, std::uint32_t peer) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.ah_attr = path;
  attributes.path_mtu = IBV_MTU_1024;
  attributes.dest_qp_num = peer;
  const int error = ibv_modify_qp(qp, &attributes,
                                  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error != 0) return error;
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = 14;
  attributes.retry_cnt = 7;
  return ibv_modify_qp(
      qp, &attributes,
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

TEST(Ports, AConnectionRunsOverThePortOfItsQueuePair) {
  test_of_two_ports([](TwoPorts& ports) {
    const auto one = make_connection(ports, kPort);
    const auto two = make_connection(ports, kOther);
    EXPECT_EQ(EINVAL, connect(one.get(), ports.path(kOther, ports.gid(kOther).gid), two->qp_num));
    ASSERT_EQ(0, connect(one.get(), ports.path(kPort, ports.gid(kOther).gid), two->qp_num));
    ASSERT_EQ(0, connect(two.get(), ports.path(kOther, ports.gid(kPort).gid), one->qp_num));
    ASSERT_EQ(0, ports.expect_at(two.get()));
    ASSERT_EQ(0, ports.post(one.get(), nullptr, 0));
    for (const ibv_wc& completion : take_completions(ports.cq(), 2)) EXPECT_EQ(IBV_WC_SUCCESS, completion.status);
    ASSERT_EQ(0, to_state(one.get(), IBV_QPS_SQD));
    ibv_qp_attr attributes{};
    attributes.port_num = kOther;
    EXPECT_EQ(EINVAL, ibv_modify_qp(one.get(), &attributes, IBV_QP_PORT));
  });
}

// The events that come until one of type `last`.
std::vector<std::pair<int, int>> events_until(ibv_context* context, ibv_event_type last) {
  std::vector<std::pair<int, int>> seen;
  for (;;) {
    pollfd fd{.fd = context->async_fd, .events = POLLIN, .revents = 0};
    if (::poll(&fd, 1, 10'000) != 1) {
      ADD_FAILURE() << "no event of type " << last;
      return seen;
    }
    ibv_async_event event{};
    EXPECT_EQ(0, ibv_get_async_event(context, &event));
    seen.emplace_back(event.event_type, event.element.port_num);
    ibv_ack_async_event(&event);
    if (event.event_type == last) return seen;
  }
}

// What the network is told of before `ip` changes an MTU has been seen when the port has that MTU.
void wait_for_mtu(ibv_context* context, std::uint8_t port, ibv_mtu wanted) {
  ibv_port_attr attributes{};
  ASSERT_EQ(0, ibv_query_port(context, port, &attributes));
  for (int round = 0; round < 1000 && attributes.active_mtu != wanted; ++round) {
    ::poll(nullptr, 0, 10);
    ASSERT_EQ(0, ibv_query_port(context, port, &attributes));
  }
  EXPECT_EQ(wanted, attributes.active_mtu);
}

TEST(Ports, AnEventNamesThePortThatWentDown) {
  test_of_two_ports([](TwoPorts& ports) {
    ip("link set two down");
    for (const auto& [type, port] : events_until(ports.context(), IBV_EVENT_PORT_ERR)) EXPECT_EQ(kOther, port) << type;
    ibv_port_attr attributes{};
    EXPECT_EQ(0, ibv_query_port(ports.context(), kOther, &attributes));
    EXPECT_EQ(IBV_PORT_DOWN, attributes.state);
    EXPECT_EQ(0, ibv_query_port(ports.context(), kPort, &attributes));
    EXPECT_EQ(IBV_PORT_ACTIVE, attributes.state);
    ip("link set two up");
    for (const auto& [type, port] : events_until(ports.context(), IBV_EVENT_PORT_ACTIVE)) {
      EXPECT_EQ(kOther, port) << type;
    }
  });
}

// As a virtual machine that migrates has its network interface taken away and given another of the same name.
TEST(Ports, AnInterfaceThatIsMadeAnewIsThePortAgain) {
  test_of_two_ports([](TwoPorts& ports) {
    const std::uint32_t before = ports.gid(kOther).ndev_ifindex;
    ip("link del two");
    for (const auto& [type, port] : events_until(ports.context(), IBV_EVENT_PORT_ERR)) EXPECT_EQ(kOther, port) << type;
    ibv_port_attr attributes{};
    EXPECT_EQ(0, ibv_query_port(ports.context(), kOther, &attributes));
    EXPECT_EQ(IBV_PORT_DOWN, attributes.state);
    EXPECT_EQ(IBV_MTU_1024, attributes.active_mtu) << "what is sent meanwhile is lost, and not too long";
    ip("link add two type veth peer name far2");
    ip("link set far2 up");
    ip("address add 10.9.2.1/24 dev two");
    ip("link set two up");
    bool gids_told = false;
    for (const auto& [type, port] : events_until(ports.context(), IBV_EVENT_PORT_ACTIVE)) {
      EXPECT_EQ(kOther, port) << type;
      gids_told |= type == IBV_EVENT_GID_CHANGE;
    }
    EXPECT_TRUE(gids_told);
    const ibv_gid_entry gid = ipv4_gid(ports.context(), kOther);
    EXPECT_EQ(::if_nametoindex("two"), gid.ndev_ifindex);
    EXPECT_NE(before, gid.ndev_ifindex);
    for (const auto& [from, to] : {std::pair{kPort, kOther}, std::pair{kOther, kPort}}) {
      const auto ah = ports.make_path(from, ports.gid(to).gid);
      ASSERT_TRUE(ah) << std::strerror(errno);
      ASSERT_EQ(0, ports.expect_at(ports.qp(to)));
      ASSERT_EQ(0, ports.post(ports.qp(from), ah.get(), ports.qp(to)->qp_num));
      for (const ibv_wc& completion : take_completions(ports.cq(), 2)) {
        EXPECT_EQ(IBV_WC_SUCCESS, completion.status) << int{from} << " to " << int{to};
      }
    }
  });
}

// Another interface that takes the name of the one that went is not taken from the port that is on it.
TEST(Ports, AnInterfaceOfAnotherPortIsNotTakenByName) {
  test_of_two_ports([](TwoPorts& ports) {
    ip("link del two");
    events_until(ports.context(), IBV_EVENT_PORT_ERR);
    ip("link set one down");
    ip("link set one name two");
    ip("link set two up");
    events_until(ports.context(), IBV_EVENT_PORT_ACTIVE);
    // The second port looks at the network behind the first: after this it has seen what the first one has told.
    ip("link set two mtu 600");
    wait_for_mtu(ports.context(), kPort, IBV_MTU_512);
    ibv_port_attr attributes{};
    EXPECT_EQ(0, ibv_query_port(ports.context(), kPort, &attributes));
    EXPECT_EQ(IBV_PORT_ACTIVE, attributes.state);
    EXPECT_EQ(0, ibv_query_port(ports.context(), kOther, &attributes));
    EXPECT_EQ(IBV_PORT_DOWN, attributes.state);
  });
}

// Nor from a device that this process has not opened.
TEST(Ports, AnInterfaceOfAnUnopenedDeviceIsNotTakenByName) {
  in_own_namespace([] {
    add_interfaces();
    ::setenv("VERBENA_DEVICES", "one,two,lo", 1);
    int count = 0;
    ibv_device** const list = ibv_get_device_list(&count);
    ASSERT_EQ(3, count);
    const Owned<ibv_context> first(ibv_open_device(list[0]));
    const Owned<ibv_context> loopback(ibv_open_device(list[2]));
    ibv_free_device_list(list);
    ASSERT_TRUE(first && loopback);
    ip("link del one");
    events_until(first.get(), IBV_EVENT_PORT_ERR);
    ip("link set two down");
    ip("link set two name one");
    ip("link set one up");
    ip("link set lo mtu 2000");  // when that is seen, so is all before it
    wait_for_mtu(loopback.get(), kPort, IBV_MTU_1024);
    ibv_port_attr attributes{};
    EXPECT_EQ(0, ibv_query_port(first.get(), kPort, &attributes));
    EXPECT_EQ(IBV_PORT_DOWN, attributes.state);
  });
}

TEST(Ports, AnMtuIsThatOfThePort) {
  test_of_two_ports([](TwoPorts& ports) {
    ibv_port_attr attributes{};
    ASSERT_EQ(0, ibv_query_port(ports.context(), kOther, &attributes));
    EXPECT_EQ(IBV_MTU_1024, attributes.active_mtu);
    ip("link set two mtu 600");
    wait_for_mtu(ports.context(), kOther, IBV_MTU_512);
    ASSERT_EQ(0, ibv_query_port(ports.context(), kPort, &attributes));
    EXPECT_EQ(IBV_MTU_1024, attributes.active_mtu);
  });
}

TEST(Ports, AGroupArrivesAtThePortOfTheMember) {
  test_of_two_ports([](TwoPorts& ports) {
    ibv_gid group{};
    group.raw[10] = group.raw[11] = 0xff;
    group.raw[12] = 239;
    group.raw[15] = 77;
    const auto member = ports.make_another();
    ASSERT_EQ(0, to_init(member.get(), kQkey, kPort));
    ASSERT_EQ(0, ibv_attach_mcast(member.get(), &group, 0));
    ASSERT_EQ(0, to_init(member.get(), kQkey, kOther));  // and its groups with it
    ASSERT_EQ(0, to_state(member.get(), IBV_QPS_RTR));
    ASSERT_EQ(0, ports.expect_at(member.get()));
    for (std::uint8_t from : {kPort, kOther}) {
      const auto ah = ports.make_path(from, group);
      ASSERT_TRUE(ah);
      ASSERT_EQ(0, ports.post(ports.qp(from), ah.get(), 0xffffff));
      for (const ibv_wc& completion : take_completions(ports.cq(), from == kPort ? 1 : 2)) {
        EXPECT_EQ(IBV_WC_SUCCESS, completion.status);
      }
      EXPECT_TRUE(ports.is_quiet()) << "from port " << int{from};
    }
    EXPECT_EQ(0, ibv_detach_mcast(member.get(), &group, 0));
  });
}

TEST(Ports, OfInfinibandHaveTheirOwnLidsAndPartitions) {
  in_own_namespace([] {
    ip("link set lo up");
    TwoPorts ports("lo/link_layer=infiniband/lid=4/pkeys=0xffff+0x8001+lo/link_layer=infiniband/lid=5", true);
    for (std::uint8_t port : {kPort, kOther}) {
      ibv_port_attr attributes{};
      ASSERT_EQ(0, ibv_query_port(ports.context(), port, &attributes));
      EXPECT_EQ(3 + port, attributes.lid);
      __be16 pkey = 0;
      ASSERT_EQ(0, ibv_query_pkey(ports.context(), port, 1, &pkey));
      EXPECT_EQ(port == kPort ? 0x8001 : 0, be16toh(pkey));
    }
    for (const std::uint16_t lid : {std::uint16_t{4}, std::uint16_t{5}}) {
      ibv_ah_attr attributes{};
      attributes.port_num = kPort;
      attributes.dlid = lid;
      const Owned<ibv_ah> ah(ibv_create_ah(ports.pd(), &attributes));
      ASSERT_TRUE(ah);
      ASSERT_EQ(0, ports.expect_at(ports.qp(kOther)));
      ASSERT_EQ(0, ports.post(ports.qp(kPort), ah.get(), ports.qp(kOther)->qp_num));
      for (const ibv_wc& completion : take_completions(ports.cq(), lid == 5 ? 2 : 1)) {
        EXPECT_EQ(IBV_WC_SUCCESS, completion.status);
      }
      EXPECT_TRUE(ports.is_quiet()) << "LID " << lid;
    }
  });
}

TEST(Ports, AnInterfaceIsAPortOnce) {
  in_own_namespace([] {
    add_interfaces();
    ::setenv("VERBENA_DEVICES", "one+two,two,lo,lo+missing", 1);
    int count = 0;
    ibv_device** const list = ibv_get_device_list(&count);
    ASSERT_NE(nullptr, list);
    EXPECT_EQ(2, count) << "verbena0 of one and two, verbena1 of lo";
    ibv_free_device_list(list);
  });
}

}  // namespace
}  // namespace verbena::abi
