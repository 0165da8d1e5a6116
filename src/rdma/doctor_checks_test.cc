// Facts as they were in cases that puzzled people, and what the doctor must say to each.
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include "rdma/doctor_device_checks.h"
#include "rdma/doctor_finding.h"
#include "rdma/doctor_host_checks.h"
#include "rdma/doctor_path_checks.h"

namespace verbena::rdma {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kEth0 = 2;

Gid gid(const char* text) {
  return *parse_gid(text);
}

GidEntry entry(const char* text, std::uint32_t index = 0, GidType type = GidType::kRoceV2,
               std::uint32_t netdev = kEth0) {
  return {.gid = gid(text), .type = type, .port = 1, .index = index, .netdev = netdev};
}

InterfaceFacts eth0(const std::vector<const char*>& addresses, std::uint32_t mtu = 9000) {
  InterfaceFacts facts{.index = kEth0, .name = "eth0", .up = true, .carrier = true, .mtu = mtu};
  for (const char* address : addresses) facts.addresses.push_back({.gid = gid(address), .prefix_length = 24});
  return facts;
}

PortFacts ethernet_port() {
  PortFacts port{.rate_mbps = 100000};
  port.view = {.port = 1,
               .link_layer = LinkLayer::kEthernet,
               .active = true,
               .state = "PORT_ACTIVE",
               .active_mtu = 4096,
               .lid = 0,
               .gid_table_length = 256,
               .grh_required = true};
  return port;
}

PortFacts infiniband_port() {
  PortFacts port = ethernet_port();
  port.view.link_layer = LinkLayer::kInfiniBand;
  port.view.lid = 7;
  port.view.grh_required = false;
  port.sm_lid = 1;
  return port;
}

// A ConnectX with 10.0.0.1 on eth0; the path to 10.0.0.2 is on the link, its neighbour known, both ends alike.
struct World {
  World() {
    DeviceFacts device{.name = "mlx5_0", .kind = DeviceKind::kHardware, .max_ah = 1000};
    device.ports = {ethernet_port()};
    device.gids = {entry("10.0.0.1", 3)};
    device.resources = {{"pd", 3, 1000}};
    host.devices = {device};
    host.interfaces = {eth0({"10.0.0.1"})};
    host.kernel_rdma = true;
    host.kernel_devices = {"mlx5_0"};
    host.namespace_mode = RdmaNamespaceMode::kShared;
    host.char_devices = 1;
    host.process.ipc_lock = host.process.net_raw = true;
    path.peer = "node7";
    path.destination = gid("10.0.0.2");
    path.device = "mlx5_0";
    path.port = 1;
    path.source = SourceChoice{
        .entry = device.gids.front(), .route = {}, .explanation = "the route leaves by eth0", .reason = {}};
    path.route = Route{.netdev = kEth0, .source = gid("10.0.0.1"), .gateway = {}, .local = false, .mtu = 0};
    path.neighbour = NeighbourFacts{.state = NeighbourFacts::State::kReachable,
                                    .address = gid("10.0.0.2"),
                                    .netdev = kEth0,
                                    .mac = MacAddress{2, 0, 0, 0, 0, 1}};
    path.far = FarPort{.device = "mlx5_1",
                       .netdev = "eth1",
                       .link_layer = LinkLayer::kEthernet,
                       .gids = {gid("10.0.0.2")},
                       .types = {GidType::kRoceV2},
                       .mtu = 4096,
                       .rate_mbps = 100000,
                       .qkey = 0x11111111};
    path.qkey = 0x11111111;
  }

  DeviceFacts& device() { return host.devices.front(); }
  PortFacts& port() { return device().ports.front(); }
  void make_infiniband() {
    port() = infiniband_port();
    device().gids = {entry("fe80::a", 0, GidType::kInfiniBand, 0)};
    path.destination = {};
    path.dlid = 9;
    path.route.reset();
    path.neighbour.reset();
    path.far->lid = 9;
    path.far->gids = {gid("fe80::b")};
    path.far->link_layer = LinkLayer::kInfiniBand;
    path.local = LocalPort{.link_layer = LinkLayer::kInfiniBand, .kind = DeviceKind::kHardware, .lid = 7};
  }
  std::vector<Finding> findings() {
    std::vector<Finding> all = check_devices(host);
    for (auto& part : {check_port(host, device(), port()), check_host(host), check_path(host, path)}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  HostFacts host;
  PathFacts path;
};

Finding find(const std::vector<Finding>& findings, const std::string& check) {
  const Finding* worst_one = nullptr;
  for (const Finding& each : findings) {
    if (each.check == check && (worst_one == nullptr || each.severity > worst_one->severity)) worst_one = &each;
  }
  return worst_one == nullptr ? Finding{.check = "none"} : *worst_one;
}

std::string told(const Finding& finding) {
  return std::string(to_string(finding.severity)) + ": " + finding.evidence + " | " + finding.cause + " | " +
         finding.remedy;
}

TEST(Doctor, AHealthyHostAndPathHaveNothingButGood) {
  for (const Finding& finding : World().findings()) {
    EXPECT_EQ(finding.severity, Severity::kGood) << finding.check << " " << told(finding);
  }
}

TEST(Doctor, WhateverIsNotGoodSaysWhyAndAFailureWhatToDo) {
  World world;
  world.host.process.memlock_bytes = 1 << 20;
  world.host.process.ipc_lock = world.host.process.net_raw = false;
  world.path.hop_limit = 0;
  world.path.far->mtu = 1024;
  world.path.qkey = 0x80000001;
  world.device().gids.clear();
  for (const Finding& finding : world.findings()) {
    if (finding.severity == Severity::kGood) continue;
    EXPECT_FALSE(finding.cause.empty()) << finding.check;
    EXPECT_TRUE(finding.severity == Severity::kNote || !finding.remedy.empty()) << finding.check;
  }
}

// AH creation fails or is slow ---------------------------------------------------------------------------------------

TEST(DoctorCases, APeerThatIsLinkLocalWhileThisHostHasIpv4Only) {  // ucx 9953
  World world;
  world.path.destination = gid("fe80::2");
  world.path.source.reset();
  world.path.device.clear();
  world.path.source_error = Error{ErrorCode::kUnreachable, 0, "destination fe80::2 is link-local IPv6"};
  const Finding match = find(check_path(world.host, world.path), "gid_match");
  EXPECT_EQ(match.severity, Severity::kFailure);
  EXPECT_THAT(match.evidence, HasSubstr("link-local IPv6"));
  EXPECT_THAT(match.evidence, HasSubstr("RoCE v2 IPv4"));
  EXPECT_EQ(find(check_path(world.host, world.path), "source_for_peer").severity, Severity::kFailure);
}

TEST(DoctorCases, ANicThatIsNotWiredForThatPeerIsNamedByTheRoute) {  // ompi 9881
  World world;
  world.path.route->netdev = 9;
  world.host.interfaces.push_back({.index = 9, .name = "eth9", .up = true, .carrier = true, .mtu = 1500});
  EXPECT_THAT(told(find(check_path(world.host, world.path), "route")),
              HasSubstr("warning: by eth9, on the link, while the source GID is on eth0"));
}

TEST(DoctorCases, LidZeroAndAZeroGidAreInfiniBandCodeOnAnEthernetPort) {  // libgdsync 10
  World world;
  world.path.destination = {};
  const Finding address = find(check_path(world.host, world.path), "peer_address");
  EXPECT_EQ(address.severity, Severity::kFailure);
  EXPECT_THAT(address.evidence, HasSubstr("zero"));
  EXPECT_THAT(check_link_layer(world.device(), world.port()).evidence, HasSubstr("is_global = 1"));
}

TEST(DoctorCases, ANeighbourThatFailedOrIsIncompleteIsTheNextHop) {  // ucx 3826, 3858; libfabric 9494; rdma-core 524
  for (const auto state : {NeighbourFacts::State::kFailed, NeighbourFacts::State::kIncomplete}) {
    World world;
    world.path.neighbour = NeighbourFacts{.state = state, .address = gid("10.0.0.2"), .netdev = kEth0};
    const Finding finding = find(check_path(world.host, world.path), "neighbour");
    EXPECT_EQ(finding.severity, Severity::kFailure);
    EXPECT_THAT(finding.cause, HasSubstr("three seconds"));
  }
}

TEST(DoctorCases, ANeighbourThatNobodyAskedForIsResolvedByTheFirstHandle) {  // ucx 1005, libfabric 3458
  World world;
  world.path.neighbour->state = NeighbourFacts::State::kNone;
  const Finding finding = find(check_path(world.host, world.path), "neighbour");
  EXPECT_EQ(finding.severity, Severity::kNote);
  EXPECT_THAT(finding.remedy, HasSubstr("before the traffic"));
}

TEST(DoctorCases, AnAddressThatTwoInterfacesLeadToIsWarnedOf) {
  World world;
  world.path.neighbours_elsewhere = {{.state = NeighbourFacts::State::kReachable,
                                      .address = gid("10.0.0.2"),
                                      .netdev = 9,
                                      .mac = MacAddress{2, 0, 0, 0, 0, 9}}};
  EXPECT_EQ(find(check_path(world.host, world.path), "neighbour").severity, Severity::kWarning);
}

TEST(DoctorCases, TheNextHopIsTheRouterWhereThereIsOne) {
  World world;
  world.path.route->gateway = gid("10.0.0.254");
  world.path.neighbour =
      NeighbourFacts{.state = NeighbourFacts::State::kFailed, .address = gid("10.0.0.254"), .netdev = kEth0};
  EXPECT_THAT(find(check_path(world.host, world.path), "neighbour").evidence, HasSubstr("the router 10.0.0.254"));
}

// AH lifetime, limits ------------------------------------------------------------------------------------------------

TEST(DoctorCases, MorePeersThanTheDeviceHoldsAddressHandles) {  // libfabric 11536
  World world;
  world.path.peers = 5000;
  EXPECT_THAT(told(find(check_path(world.host, world.path), "max_ah")), HasSubstr("warning: 5000 peers"));
  world.path.peers = 1000;
  EXPECT_EQ(find(check_path(world.host, world.path), "max_ah").severity, Severity::kGood);
}

TEST(DoctorCases, ADeviceWhoseQueuePairsAreNearlyUsedUp) {  // uccl 922
  World world;
  world.device().resources = {{"qp", 950, 1000}, {"pd", 1, 1000}};
  const Finding finding = check_resources(world.host, world.device());
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_THAT(finding.cause, HasSubstr("qp"));
  EXPECT_THAT(finding.evidence, HasSubstr("address handles are not counted"));
  world.device().resources.reset();
  EXPECT_EQ(check_resources(world.host, world.device()).severity, Severity::kNote);
}

// GID choice ---------------------------------------------------------------------------------------------------------

TEST(DoctorCases, GidsWhoseAddressHasGoneAreStale) {  // nccl 1333, 2157; rxe-dev 79
  World world;
  world.device().gids.push_back(entry("10.0.0.77", 4));
  EXPECT_THAT(told(find(check_gid_addresses(world.host, world.device(), world.port()), "gid_addresses")),
              HasSubstr("10.0.0.77"));
}

TEST(DoctorCases, AnAddressWithoutAGidIsNamed) {
  World world;
  world.host.interfaces.front().addresses.push_back({.gid = gid("10.0.0.50"), .prefix_length = 24});
  const Finding finding = find(check_gid_addresses(world.host, world.device(), world.port()), "gid_addresses");
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_THAT(finding.evidence, HasSubstr("10.0.0.50"));
}

TEST(DoctorCases, AnAddressUnderDuplicateDetectionIsNotMissing) {
  World world;
  world.host.interfaces.front().addresses.push_back({.gid = gid("fd00::1"), .prefix_length = 64, .tentative = true});
  EXPECT_THAT(find(check_gid_addresses(world.host, world.device(), world.port()), "gid_addresses").evidence,
              HasSubstr("tentative"));
}

TEST(DoctorCases, GidsOfOtherPodsAreNotOfThisNamespace) {  // nccl 718
  World world;
  world.device().gids.push_back(entry("10.9.0.1", 5, GidType::kRoceV2, 77));
  EXPECT_THAT(told(find(check_gid_addresses(world.host, world.device(), world.port()), "gid_addresses")),
              HasSubstr("never configure an index"));
}

TEST(DoctorCases, OnlyLinkLocalGidsReachTheLinkOnly) {  // nccl 769
  World world;
  world.device().gids = {entry("fe80::1", 1)};
  EXPECT_EQ(check_gid_table(world.host, world.device(), world.port()).severity, Severity::kNote);
}

TEST(DoctorCases, RoceV1BesideV2IsANoteAndAloneAWarning) {  // Mooncake 113
  World world;
  world.device().gids = {entry("10.0.0.1", 2, GidType::kRoceV1), entry("10.0.0.1", 3)};
  EXPECT_EQ(find(check_gid_types(world.device(), world.port()), "gid_types").severity, Severity::kNote);
  world.device().gids.pop_back();
  EXPECT_EQ(find(check_gid_types(world.device(), world.port()), "gid_types").severity, Severity::kWarning);
}

TEST(DoctorCases, TwoEndsOfDifferentRoceVersionsDoNotMeet) {  // perftest 44
  World world;
  world.path.far->types = {GidType::kRoceV1};
  EXPECT_EQ(find(check_path(world.host, world.path), "gid_match").severity, Severity::kFailure);
}

TEST(DoctorCases, AHostWithIpv6OnlyIsAsGoodAsAnother) {  // Mooncake 1593
  World world;
  world.device().gids = {entry("2001:db8::1", 0)};
  world.host.interfaces = {eth0({"2001:db8::1"})};
  EXPECT_EQ(check_gid_table(world.host, world.device(), world.port()).severity, Severity::kGood);
}

TEST(DoctorCases, ADataPathThatIsDeadAfterAGoodHandshakeIsAFailure) {  // nccl 426
  World world;
  const ProbeFacts probe{.series = {{.bytes = 64, .sent = 20}}};
  const auto findings = check_probe(probe, world.path);
  EXPECT_EQ(find(findings, "handshake").severity, Severity::kGood);
  EXPECT_EQ(find(findings, "probe").severity, Severity::kFailure);
  EXPECT_THAT(find(findings, "probe").cause, HasSubstr("4791"));
}

TEST(DoctorProbe, SilenceForAnotherQkeyOrAnotherPortsGidIsNotBlamedOnTheNetwork) {
  const ProbeFacts probe{.series = {{.bytes = 64, .sent = 20}}};
  World other_qkey;
  other_qkey.path.qkey = 0x22222222;
  Finding silent = find(check_probe(probe, other_qkey.path), "probe");
  EXPECT_THAT(silent.cause, HasSubstr("0x22222222"));
  EXPECT_THAT(silent.cause, HasSubstr("0x11111111"));
  EXPECT_THAT(silent.cause, ::testing::Not(HasSubstr("filtered")));
  World controlled_qkey;
  controlled_qkey.path.qkey = 0x80000001;
  silent = find(check_probe(probe, controlled_qkey.path), "probe");
  EXPECT_THAT(silent.cause, HasSubstr("0x80000001"));
  EXPECT_THAT(silent.cause, HasSubstr("qkey_mismatch"));
  EXPECT_THAT(silent.cause, ::testing::Not(HasSubstr("filtered")));
  World other_port;
  other_port.path.destination = gid("10.0.0.3");
  silent = find(check_probe(probe, other_port.path), "probe");
  EXPECT_THAT(silent.cause, HasSubstr("10.0.0.3"));
  EXPECT_THAT(silent.cause, HasSubstr("mlx5_1 has 10.0.0.2"));
  EXPECT_THAT(silent.cause, ::testing::Not(HasSubstr("filtered")));
}

TEST(DoctorProbe, AnAddressHandleThatWentAwayMeanwhileIsNamed) {
  ProbeSeries series{.bytes = 64, .planned = 20, .sent = 5, .received = 5, .unsent = 15, .unsent_why = "source gone"};
  const Finding partly = find(check_probe({.series = {series}}, {}), "probe");
  EXPECT_EQ(partly.severity, Severity::kWarning);
  EXPECT_THAT(partly.evidence, HasSubstr("15 not sent: no address handle (source gone)"));
  series.sent = series.received = 0;
  EXPECT_EQ(find(check_probe({.series = {series}}, {}), "probe").severity, Severity::kFailure);
}

TEST(DoctorProbe, WhatWasNotSentIsNotGood) {
  const auto severity_of = [](const ProbeSeries& series) {
    return find(check_probe({.series = {series}}, {}), "probe").severity;
  };
  EXPECT_EQ(severity_of({.bytes = 64, .planned = 20}), Severity::kFailure);
  EXPECT_EQ(severity_of({.bytes = 64, .planned = 20, .sent = 5, .received = 5}), Severity::kNote);
  EXPECT_EQ(severity_of({.bytes = 64, .planned = 20, .sent = 20, .received = 20}), Severity::kGood);
}

TEST(DoctorCases, APortThatIsDownIsAFailureUnlessAnotherIsUp) {  // Mooncake 3596
  World world;
  world.port().view.active = false;
  world.port().view.state = "PORT_DOWN";
  world.host.interfaces.front().up = false;
  EXPECT_THAT(told(check_port_state(world.host, world.device(), world.port())), HasSubstr("ip link set eth0 up"));
  EXPECT_EQ(check_port_state(world.host, world.device(), world.port()).severity, Severity::kFailure);
  world.host.devices.push_back(World().device());
  EXPECT_EQ(check_port_state(world.host, world.host.devices[0], world.host.devices[0].ports[0]).severity,
            Severity::kWarning);
}

// GRH, hop limit, LID, MTU -------------------------------------------------------------------------------------------

TEST(DoctorCases, APortThatDemandsAGrhAndADestinationByLid) {  // perftest 393, uccl 995, nvshmem 96
  World world;
  world.make_infiniband();
  EXPECT_EQ(find(check_lid(world.host, world.path), "lid").severity, Severity::kGood);
  world.port().view.grh_required = true;
  EXPECT_THAT(told(find(check_lid(world.host, world.path), "lid")), HasSubstr("IBV_QPF_GRH_REQUIRED"));
}

TEST(DoctorCases, HopLimitOneOnARoutedPathIsAFailureAndElsewhereNot) {  // rdma-core 1637
  World world;
  world.path.hop_limit = 1;
  EXPECT_EQ(find(check_hop_limit(world.path), "hop_limit").severity, Severity::kGood);
  world.path.route->gateway = gid("10.0.0.254");
  EXPECT_EQ(find(check_hop_limit(world.path), "hop_limit").severity, Severity::kFailure);
}

TEST(DoctorCases, OfTheKernelsDeviceTheKernelsHopLimitCounts) {
  World world;
  world.path.route->gateway = gid("10.0.0.254");
  world.path.hop_limit = 1;
  world.path.kernel_hop_limit = 64;
  EXPECT_THAT(told(find(check_hop_limit(world.path), "hop_limit")), HasSubstr("1 was asked for"));
  EXPECT_EQ(find(check_hop_limit(world.path), "hop_limit").severity, Severity::kNote);
  world.path.hop_limit = 64;
  EXPECT_EQ(find(check_hop_limit(world.path), "hop_limit").severity, Severity::kGood);
  world.path.kernel_hop_limit = 1;
  EXPECT_EQ(find(check_hop_limit(world.path), "hop_limit").severity, Severity::kFailure);
  EXPECT_THAT(find(check_hop_limit(world.path), "hop_limit").remedy, HasSubstr("hoplimit"));
}

TEST(DoctorCases, LidZeroOnInfiniBandIsAFailure) {  // pegaflow 230
  World world;
  world.make_infiniband();
  world.path.dlid = 0;
  world.path.destination = gid("fe80::b");
  EXPECT_THAT(told(find(check_path(world.host, world.path), "lid")), HasSubstr("failure: the destination LID is 0"));
  world.port().view.lid = 0;
  EXPECT_THAT(check_link_layer(world.device(), world.port()).remedy, HasSubstr("opensm"));
}

TEST(DoctorLid, ThatNobodyToldIsANoteAndNotTheProgramsFault) {
  World world;
  world.make_infiniband();
  world.path.dlid = 0;
  world.path.far.reset();
  const Finding unknown = find(check_lid(world.host, world.path), "lid");
  EXPECT_EQ(unknown.severity, Severity::kNote);
  EXPECT_THAT(unknown.remedy, HasSubstr("doctor --serve"));
}

TEST(DoctorLid, ThatThePeersPortLacksIsItsSubnetManagers) {
  World world;
  world.make_infiniband();
  world.path.dlid = world.path.far->lid = 0;
  EXPECT_THAT(told(find(check_lid(world.host, world.path), "lid")),
              HasSubstr("failure: the peer's port mlx5_1 has no LID"));
}

TEST(DoctorLid, ThatBothPortsHaveIsAFailure) {
  World world;
  world.make_infiniband();
  world.path.dlid = world.path.far->lid = 7;
  Finding equal = find(check_lid(world.host, world.path), "lid");
  EXPECT_THAT(told(equal), HasSubstr("failure: LID 7 is this port's own, and the peer's port has it too"));
  EXPECT_THAT(equal.remedy, HasSubstr("subnet manager"));
  world.path.local->kind = DeviceKind::kVerbena;
  equal = find(check_lid(world.host, world.path), "lid");
  EXPECT_THAT(equal.remedy, HasSubstr("lid= in VERBENA_DEVICES"));
  world.path.far->gids = {gid("fe80::a")};  // it is this very port
  EXPECT_EQ(find(check_lid(world.host, world.path), "lid").severity, Severity::kGood);
}

TEST(DoctorLid, SilenceOfAnInfinibandPortIsNotBlamedOnRoce) {
  World world;
  world.make_infiniband();
  world.path.local->kind = DeviceKind::kVerbena;
  ProbeFacts probe{.series = {{.bytes = 64, .sent = 20}}};
  for (const char* drop : {"unknown_lid", "peer_gone"}) {
    probe.drops = {{drop, 20}};
    const Finding lost = find(check_probe(probe, world.path), "probe");
    EXPECT_THAT(lost.cause, HasSubstr("LID 9 is taken for one of this host"));
    EXPECT_THAT(lost.remedy, HasSubstr("VERBENA_LIDS=9@"));
    EXPECT_THAT(lost.remedy, HasSubstr("VERBENA_LIDS=7@"));
  }
  probe.drops.clear();
  Finding silent = find(check_probe(probe, world.path), "probe");
  EXPECT_THAT(silent.cause, HasSubstr("4797"));
  EXPECT_THAT(told(silent), ::testing::Not(HasSubstr("4791")));
  world.path.local->kind = DeviceKind::kHardware;
  silent = find(check_probe(probe, world.path), "probe");
  EXPECT_THAT(silent.cause, HasSubstr("P_Key"));
  EXPECT_THAT(told(silent), ::testing::Not(HasSubstr("UDP")));
}

TEST(DoctorLid, RoceAtOneEndAndInfinibandAtTheOtherIsTheOnlyThingSaid) {
  World world;
  world.path.local = LocalPort{};
  world.path.far->link_layer = LinkLayer::kInfiniBand;
  const auto findings = check_path(world.host, world.path);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings.front().check, "peer_link_layer");
  EXPECT_THAT(told(findings.front()),
              HasSubstr("failure: mlx5_0 port 1 is Ethernet (RoCE), and the peer's port mlx5_1 is InfiniBand"));
}

TEST(Doctor, OurInfinibandPortsAnswerNoMads) {
  World world;
  world.make_infiniband();
  EXPECT_THAT(check_link_layer(world.device(), world.port()).evidence, HasSubstr("tools: ibping"));
  world.device().kind = DeviceKind::kVerbena;
  const std::string ours = check_link_layer(world.device(), world.port()).evidence;
  EXPECT_THAT(ours, HasSubstr("tools: verbena ping"));
  EXPECT_THAT(ours, HasSubstr("not ibping"));
}

TEST(Doctor, WhyOurOwnDeviceDoesNotOpenIsNamed) {
  const auto why = [](int error) {
    HostFacts host;
    host.devices = {{.name = "verbena0",
                     .kind = DeviceKind::kVerbena,
                     .open_error = Error{ErrorCode::kUnavailable, error, "ibv_open_device of verbena0"}}};
    return told(find(check_devices(host), "device_open"));
  };
  EXPECT_THAT(why(EADDRINUSE), HasSubstr("another lid="));
  EXPECT_THAT(why(EFBIG), HasSubstr("ulimit -f"));
  EXPECT_THAT(why(EMFILE), HasSubstr("ulimit -n"));
  EXPECT_THAT(why(EINVAL), HasSubstr("VERBENA_"));
  for (const int error : {EADDRINUSE, EFBIG, EIO}) EXPECT_THAT(why(error), ::testing::Not(HasSubstr("dmesg")));
}

TEST(DoctorCases, DgidAndDlidOfTwoPortsAreToldApart) {
  World world;
  world.make_infiniband();
  world.path.dlid = 10;
  EXPECT_THAT(told(find(check_lid(world.host, world.path), "lid")), HasSubstr("belong to two ports"));
  world.path.dlid = 9;
  world.path.destination = gid("fe80::c");
  EXPECT_THAT(told(find(check_lid(world.host, world.path), "lid")), HasSubstr("belong to two ports"));
  world.path.dlid = 0xc001;
  EXPECT_EQ(find(check_lid(world.host, world.path), "lid").severity, Severity::kFailure);
}

TEST(DoctorCases, UnequalMtusAreAWarningInBothDirections) {  // tensorflow 9432, Mooncake 3878
  World world;
  world.path.far->mtu = 1024;
  EXPECT_THAT(told(find(check_path(world.host, world.path), "path_mtu")), HasSubstr("set path_mtu to 1024"));
  world.port().view.active_mtu = 1024;
  world.path.far->mtu = 4096;
  EXPECT_EQ(find(check_path(world.host, world.path), "path_mtu").severity, Severity::kWarning);
  world.path.far->mtu = 1024;
  EXPECT_EQ(find(check_path(world.host, world.path), "path_mtu").severity, Severity::kGood);
  world.path.route->mtu = 800;
  EXPECT_THAT(told(find(check_path(world.host, world.path), "path_mtu")), HasSubstr("512"));
}

TEST(DoctorCases, SmallDatagramsThatPassWhereFullOnesDoNotAreAnMtuOnTheWay) {
  World world;
  const ProbeFacts probe{.series = {{.bytes = 64, .sent = 20, .received = 20}, {.bytes = 4096, .sent = 20}}};
  EXPECT_THAT(find(check_probe(probe, world.path), "probe").cause, HasSubstr("smaller MTU"));
}

TEST(Doctor, AnInterfaceSmallerThanTheRoceMtuIsAFailure) {
  World world;
  world.host.interfaces = {eth0({"10.0.0.1"}, 1500)};
  EXPECT_EQ(find(check_port_mtu(world.host, world.device(), world.port()), "mtu").severity, Severity::kFailure);
  world.port().view.active_mtu = 1024;
  EXPECT_EQ(find(check_port_mtu(world.host, world.device(), world.port()), "mtu").severity, Severity::kNote);
}

TEST(Doctor, AQkeyWithItsHighestBitIsNotSentAsItIs) {
  World world;
  world.path.qkey = 0x80010000;
  EXPECT_EQ(find(check_qkey(world.path), "qkey").severity, Severity::kWarning);
}

TEST(Doctor, AQkeyThatIsNotThePeersIsAFailure) {
  World world;
  EXPECT_EQ(find(check_qkey(world.path), "qkey").severity, Severity::kGood);
  world.path.qkey = 0x22222222;
  EXPECT_EQ(find(check_qkey(world.path), "qkey").severity, Severity::kFailure);
  world.path.far.reset();
  EXPECT_EQ(find(check_qkey(world.path), "qkey").severity, Severity::kGood) << "nothing is known of the peer's";
}

TEST(Doctor, AStaticRateIsComparedWithTheSlowerEnd) {
  World world;
  world.path.static_rate = IBV_RATE_100_GBPS;
  EXPECT_EQ(find(check_static_rate(world.host, world.path), "static_rate").severity, Severity::kGood);
  world.path.far->rate_mbps = 25000;
  EXPECT_EQ(find(check_static_rate(world.host, world.path), "static_rate").severity, Severity::kWarning);
  world.path.static_rate = IBV_RATE_2_5_GBPS;
  EXPECT_EQ(find(check_static_rate(world.host, world.path), "static_rate").severity, Severity::kNote);
  world.path.static_rate = 1;
  EXPECT_EQ(find(check_static_rate(world.host, world.path), "static_rate").severity, Severity::kFailure);
}

TEST(Doctor, TheEcnBitsOfATrafficClassAreLookedAt) {
  World world;
  EXPECT_TRUE(check_traffic_class(world.path).empty());
  world.path.traffic_class = 46 << 2;
  EXPECT_EQ(find(check_traffic_class(world.path), "traffic_class").severity, Severity::kGood);
  world.path.traffic_class = (46 << 2) | 2;
  EXPECT_EQ(find(check_traffic_class(world.path), "traffic_class").severity, Severity::kGood) << "ECN-capable";
  world.path.traffic_class = 2;
  EXPECT_EQ(find(check_traffic_class(world.path), "traffic_class").severity, Severity::kGood) << "ECN-capable alone";
  world.path.traffic_class = (46 << 2) | 3;
  EXPECT_EQ(find(check_traffic_class(world.path), "traffic_class").severity, Severity::kWarning);
  world.path.traffic_class = 2;
  EXPECT_EQ(find(check_traffic_class(world.path), "traffic_class").severity, Severity::kGood) << "ECN-capable, DSCP 0";
  world.path.traffic_class = 46;
  const Finding unshifted = find(check_traffic_class(world.path), "traffic_class");
  EXPECT_EQ(unshifted.severity, Severity::kNote);
  EXPECT_THAT(unshifted.remedy, testing::HasSubstr("184"));
}

// Kubernetes and tenants ---------------------------------------------------------------------------------------------

TEST(DoctorCases,
     APodThatSeesTheDeviceAndHasNoGidNeedsASecondaryNetwork) {  // k8s-rdma-shared-dev-plugin 72, calico 8482
  World world;
  world.device().gids.clear();
  world.host.interfaces = {{.index = 1, .name = "lo", .up = true, .loopback = true}};
  const Finding finding = check_gid_table(world.host, world.device(), world.port());
  EXPECT_EQ(finding.severity, Severity::kFailure);
  EXPECT_THAT(finding.evidence, HasSubstr("no GID in this network namespace"));
  EXPECT_THAT(finding.remedy, HasSubstr("attach a secondary network"));
}

TEST(DoctorCases, NamespaceModesAreExplainedForDevicePlugins) {  // k8s-rdma-shared-dev-plugin 87, 84
  World world;
  world.host.namespace_mode = RdmaNamespaceMode::kExclusive;
  EXPECT_THAT(check_namespace_mode(world.host).evidence, HasSubstr("rdma system set netns shared"));
  world.host.namespace_mode.reset();
  EXPECT_THAT(check_namespace_mode(world.host).evidence, HasSubstr("not known"));
}

TEST(DoctorCases, ADeviceThatDidNotComeBackFromAPodIsInAnotherNamespace) {  // dranet 177
  World world;
  world.host.devices.clear();
  world.host.kernel_devices.clear();
  world.host.namespace_mode = RdmaNamespaceMode::kExclusive;
  EXPECT_THAT(told(find(check_devices(world.host), "devices")), HasSubstr("rdma dev set"));
}

TEST(DoctorCases, AContainerWithoutLockedMemoryIsWarnedBeforeTheFirstQueuePair) {  // k8s-rdma-sriov-dev-plugin 29
  World world;
  world.host.process.memlock_bytes = 64 << 10;
  world.host.process.ipc_lock = false;
  EXPECT_THAT(told(check_memlock(world.host)), HasSubstr("IPC_LOCK"));
  EXPECT_EQ(check_memlock(world.host).severity, Severity::kWarning);
  EXPECT_THAT(check_capabilities(world.host).cause, HasSubstr("IPC_LOCK"));
  world.device().kind = DeviceKind::kVerbena;
  world.host.kernel_devices.clear();
  EXPECT_EQ(check_memlock(world.host).severity, Severity::kGood);
}

TEST(DoctorCases, AKernelDeviceWithoutItsCharacterDeviceWasNotHandedIn) {  // network-operator 287
  World world;
  world.host.devices.clear();
  EXPECT_THAT(told(find(check_devices(world.host), "devices")), HasSubstr("device plugin"));
  world.host.char_devices.reset();
  EXPECT_EQ(find(check_char_devices(world.host), "char_devices").severity, Severity::kFailure);
  world.host.char_devices = 1;
  world.host.unreadable_char_devices = {"/dev/infiniband/uverbs0"};
  EXPECT_THAT(told(find(check_char_devices(world.host), "char_devices")), HasSubstr("uverbs0"));
}

// The software RNIC's port -------------------------------------------------------------------------------------------

TEST(Doctor, KernelRxeOrAnotherUserThatHoldsThePortIsAFailure) {
  World world;
  world.device().kind = DeviceKind::kVerbena;
  world.host.process.uid = 1000;
  EXPECT_EQ(check_udp_port(world.host).severity, Severity::kGood);
  world.host.udp_4791 = {{.address = "10.0.0.1", .uid = 1000, .pid = 42, .process = "ping", .verbena = true}};
  EXPECT_EQ(check_udp_port(world.host).severity, Severity::kGood);
  world.host.udp_4791 = {{.address = "10.0.0.1", .uid = 1001}};
  EXPECT_THAT(told(check_udp_port(world.host)), HasSubstr("processes of one user only"));
  world.host.sees_all_processes = true;
  world.host.udp_4791 = {{.address = "0.0.0.0", .uid = 0}};
  EXPECT_THAT(told(check_udp_port(world.host)), HasSubstr("rdma link delete"));
}

TEST(Doctor, AnInfinibandPortWantsAnotherUdpPort) {
  World world;
  world.device().kind = DeviceKind::kVerbena;
  EXPECT_FALSE(check_infiniband_udp_port(world.host).has_value());
  world.port().view.link_layer = LinkLayer::kInfiniBand;
  world.host.process.uid = 1000;
  world.host.udp_4791 = {{.address = "10.0.0.1", .uid = 1001}};
  EXPECT_EQ(check_udp_port(world.host).severity, Severity::kGood);
  EXPECT_EQ(check_infiniband_udp_port(world.host)->severity, Severity::kGood);
  world.host.udp_4797 = world.host.udp_4791;
  EXPECT_THAT(told(*check_infiniband_udp_port(world.host)), HasSubstr("processes of one user only"));
}

TEST(Doctor, AStoppedProcessOnTheSoftwareRnicIsNotTakenForAStranger) {
  World world;
  world.device().kind = DeviceKind::kVerbena;
  PortHolder stopped{.address = "10.0.0.1", .uid = world.host.process.uid, .pid = 42, .process = "verbena"};
  world.host.udp_4791 = {stopped};
  EXPECT_THAT(told(check_udp_port(world.host)), HasSubstr("not known to run on the software RNIC"));
  world.host.udp_4791.front().silence = "it does not answer (stopped, or too busy)";
  const std::string text = told(check_udp_port(world.host));
  EXPECT_THAT(text, HasSubstr("does not answer (stopped, or too busy)"));
  EXPECT_THAT(text, HasSubstr("kill -CONT"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("end it")));
}

TEST(Doctor, LossControlIsSaidAsTheDriverShowsItAndNotGuessed) {
  InterfaceFacts interface = eth0({"10.0.0.1"});
  EXPECT_THAT(told(check_loss_control(interface, DeviceKind::kHardware)), HasSubstr("not shown"));
  interface.loss = {.pfc_priorities = std::uint8_t{0}, .pause = false};
  EXPECT_THAT(told(check_loss_control(interface, DeviceKind::kHardware)), HasSubstr("go-back-N"));
  interface.loss.pfc_priorities = 0x08;
  EXPECT_THAT(told(check_loss_control(interface, DeviceKind::kHardware)), HasSubstr("traffic class"));
  interface.loss.dscp_priorities = {{26, 3}};
  const Finding finding = check_loss_control(interface, DeviceKind::kHardware);
  EXPECT_EQ(finding.severity, Severity::kGood);
  EXPECT_THAT(finding.evidence, HasSubstr("DSCP 26 -> priority 3"));
}

TEST(Doctor, WithoutAServerOnlyThisHostWasLookedAtAndItSaysHowToStartOne) {
  const auto findings = check_probe({.connect_error = Error{ErrorCode::kUnreachable, 0, "refused"}}, World().path);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings.front().severity, Severity::kNote);
  EXPECT_THAT(findings.front().remedy, HasSubstr("verbena doctor --serve"));
}

TEST(Doctor, APeerThatAnswersNothingAtAllIsMoreThanAMissingServer) {
  for (const Error& error : {Error{ErrorCode::kTimedOut, 0, "no answer"},
                             Error{ErrorCode::kUnreachable, EHOSTUNREACH, "connect: No route to host"}}) {
    const Finding seen = find(check_probe({.connect_error = error}, World().path), "handshake");
    EXPECT_EQ(seen.severity, Severity::kWarning) << error.message;
    EXPECT_THAT(seen.cause, HasSubstr("neighbour"));
    EXPECT_THAT(seen.remedy, HasSubstr("ip neigh show"));
  }
  const ProbeFacts refused{.connect_error = Error{ErrorCode::kUnreachable, ECONNREFUSED, "connect: refused"}};
  EXPECT_EQ(find(check_probe(refused, World().path), "handshake").severity, Severity::kNote);
}

TEST(Doctor, AnAddressThatNamesNoHostIsNotBlamedOnAMissingServer) {
  World world;
  const ProbeFacts probe{.connect_error = Error{ErrorCode::kInvalidArgument, 0, "fe80::1 is link-local"}};
  const Finding asked = find(check_probe(probe, world.path), "handshake");
  EXPECT_EQ(asked.severity, Severity::kFailure);
  EXPECT_THAT(asked.evidence, HasSubstr("link-local"));
  EXPECT_THAT(asked.remedy, ::testing::Not(HasSubstr("--serve")));
}

TEST(Doctor, NoDeviceAtAllSaysHowToGetOne) {
  EXPECT_THAT(told(find(check_devices(HostFacts{}), "devices")), HasSubstr("verbena run"));
}

}  // namespace
}  // namespace verbena::rdma
