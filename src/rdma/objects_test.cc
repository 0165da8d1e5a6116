#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fake_verbs/fake_verbs.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rdma/verbs_error.h"
#include "verbena/completion_queue.h"
#include "verbena/device.h"
#include "verbena/gid_table.h"
#include "verbena/live_objects.h"
#include "verbena/memory_region.h"
#include "verbena/preflight.h"
#include "verbena/protection_domain.h"
#include "verbena/queue_pair.h"
#include "verbena/release_failure.h"

namespace verbena {
namespace {

using ::testing::HasSubstr;

fake::Port port_with(const char* gid) {
  fake::Port port;
  port.gids = {{*parse_gid(gid), IBV_GID_TYPE_ROCE_V2, 1}};
  return port;
}

class Objects : public ::testing::Test {
 protected:
  Objects() {
    fake::reset();
    fake::add_device("fake0", {port_with("10.0.0.1")});
    context = std::move(*Context::open("fake0"));
    domain = std::move(*ProtectionDomain::create(context));
  }

  Context context;
  ProtectionDomain domain;
};

TEST_F(Objects, AnUnknownDeviceIsNotFoundAndTheOthersAreNamed) {
  const Result<Context> none = Context::open("mlx9");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message, HasSubstr("fake0"));
}

TEST_F(Objects, TheFirstUsableDeviceHasAnActivePortWithAnAddress) {
  domain = ProtectionDomain();
  context = Context();
  fake::reset();
  fake::Port down = port_with("10.0.0.1");
  down.state = IBV_PORT_DOWN;
  fake::add_device("down0", {down});
  fake::add_device("empty0", {fake::Port{}});
  fake::add_device("good0", {down, port_with("10.0.0.3")});
  EXPECT_EQ(Context::open_first_usable()->name(), "good0");
  fake::set_port("good0", 2, down);
  const Result<Context> none = Context::open_first_usable();
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("down0 port 1"));
  EXPECT_THAT(none.error().message, HasSubstr("empty0 port 1"));
}

TEST_F(Objects, APortIsToldInWords) {
  fake::Port port = port_with("10.0.0.1");
  port.active_mtu = IBV_MTU_4096;
  port.lid = 7;
  port.active_width = 2;   // 4x
  port.active_speed = 32;  // EDR
  fake::set_port("fake0", 1, port);
  const Result<PortView> view = context.first_active_port();
  ASSERT_TRUE(view);
  EXPECT_EQ(view->bits_per_second, 100'000'000'000U);
  EXPECT_EQ(view->active_mtu, 4096U);
  EXPECT_EQ(view->lid, 7);
  EXPECT_EQ(view->link_layer, LinkLayer::kEthernet);
  EXPECT_TRUE(view->grh_required);
  EXPECT_FALSE(context.query_port(2));
}

TEST_F(Objects, ChildrenKeepTheirParents) {
  CompletionQueue queue = std::move(*CompletionQueue::create(context, 16));
  QueuePair pair = std::move(*QueuePair::create_ud(domain, queue, queue));
  const Status busy = context.close();
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, ErrorCode::kBusy);
  EXPECT_FALSE(domain.close());
  EXPECT_FALSE(queue.close());
  // Destroyed in the wrong order: nothing goes before what needs it.
  context = Context();
  domain = ProtectionDomain();
  queue = CompletionQueue();
  EXPECT_EQ(fake::live().sum(), 4U);
  EXPECT_TRUE(pair.close());
  EXPECT_EQ(fake::live().sum(), 0U);
}

TEST_F(Objects, EbusyOfTheDeviceIsToldAndTheObjectKept) {
  ibv_ah_attr attributes{};
  attributes.is_global = 1;
  attributes.port_num = 1;
  ibv_ah* address = ibv_create_ah(domain.get(), &attributes);
  ASSERT_NE(address, nullptr);
  const Status busy = domain.close();
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, ErrorCode::kBusy);
  EXPECT_EQ(busy.error().system_errno, EBUSY);
  EXPECT_THAT(busy.error().message, HasSubstr("ibv_dealloc_pd"));
  ibv_destroy_ah(address);
  EXPECT_TRUE(domain.close());
  EXPECT_TRUE(domain.close());
}

TEST_F(Objects, EbusyInADestructorGoesToTheHandler) {
  std::vector<Error> errors;
  set_release_failure_handler([&](const Error& error) { errors.push_back(error); });
  ibv_ah_attr attributes{};
  attributes.is_global = 1;
  attributes.port_num = 1;
  ASSERT_NE(ibv_create_ah(domain.get(), &attributes), nullptr);
  domain = ProtectionDomain();
  set_release_failure_handler({});
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].system_errno, EBUSY);
}

struct Failure {
  const char* call;
  int error;
  ErrorCode code;
  const char* word;
};

class ObjectsFail : public Objects, public ::testing::WithParamInterface<Failure> {};

TEST_P(ObjectsFail, NamingTheCall) {
  fake::fail_call(GetParam().call, GetParam().error);
  const auto attempt = [&]() -> Status {
    Result<ProtectionDomain> made = ProtectionDomain::create(context);
    if (!made) return tl::make_unexpected(made.error());
    Result<CompletionChannel> channel = CompletionChannel::create(context);
    if (!channel) return tl::make_unexpected(channel.error());
    Result<CompletionQueue> queue = CompletionQueue::create(context, 16, *channel);
    if (!queue) return tl::make_unexpected(queue.error());
    Result<DatagramBuffers> buffers = DatagramBuffers::create(*made, 4, 64);
    if (!buffers) return tl::make_unexpected(buffers.error());
    Result<QueuePair> pair = QueuePair::create_ud(*made, *queue, *queue);
    if (!pair) return tl::make_unexpected(pair.error());
    return queue->arm();
  };
  const Status status = attempt();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, GetParam().code);
  EXPECT_EQ(status.error().system_errno, GetParam().error);
  EXPECT_THAT(status.error().message, HasSubstr(GetParam().call));
  EXPECT_THAT(status.error().message, HasSubstr(GetParam().word));
  EXPECT_EQ(fake::live().sum(), 2U);  // the fixture's own
}

INSTANTIATE_TEST_SUITE_P(
    All, ObjectsFail,
    ::testing::Values(Failure{"ibv_alloc_pd", ENOMEM, ErrorCode::kExhausted, "fake0"},
                      Failure{"ibv_create_comp_channel", EMFILE, ErrorCode::kExhausted, "EMFILE"},
                      Failure{"ibv_create_cq", ENOMEM, ErrorCode::kExhausted, "ulimit -l"},
                      Failure{"ibv_reg_mr", ENOMEM, ErrorCode::kExhausted, "ulimit -l"},
                      Failure{"ibv_reg_mr", EACCES, ErrorCode::kPermission, "access"},
                      Failure{"ibv_create_qp", EINVAL, ErrorCode::kInvalidArgument, "max_send 128"},
                      Failure{"ibv_modify_qp", EINVAL, ErrorCode::kInvalidArgument, "INIT"},
                      Failure{"ibv_req_notify_cq", ENOSYS, ErrorCode::kUnsupported, "completion queue"}),
    [](const auto& tested) { return std::string(tested.param.call) + "_" + strerrorname_np(tested.param.error); });

TEST_F(Objects, AQkeyWithItsHighBitIsRefused) {
  const CompletionQueue queue = std::move(*CompletionQueue::create(context, 16));
  UdOptions options;
  options.qkey = 0x80000001;
  const Result<QueuePair> pair = QueuePair::create_ud(domain, queue, queue, options);
  ASSERT_FALSE(pair);
  EXPECT_EQ(pair.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(Objects, DatagramBuffersHideTheGrh) {
  DatagramBuffers buffers = std::move(*DatagramBuffers::create(domain, 3, 100));
  EXPECT_EQ(buffers.size(), 3U);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const ibv_sge receive = buffers.receive_sge(i);
    EXPECT_EQ(receive.length, 140U);
    EXPECT_EQ(receive.addr + 40, reinterpret_cast<std::uintptr_t>(buffers.payload(i).data()));
    EXPECT_EQ(buffers.send_sge(i, 10).addr, receive.addr + 40);
    EXPECT_EQ(buffers.send_sge(i, 10).length, 10U);
    EXPECT_EQ(buffers.received(i, 140).size(), 100U);
    EXPECT_EQ(buffers.received(i, 41).size(), 1U);
    EXPECT_EQ(buffers.received(i, 39).size(), 0U);
  }
  EXPECT_GE(buffers.payload(1).data() - buffers.payload(0).data(), 140);
}

TEST_F(Objects, AReceiveIsPostedWithAClearedGrh) {
  const CompletionQueue queue = std::move(*CompletionQueue::create(context, 16));
  QueuePair pair = std::move(*QueuePair::create_ud(domain, queue, queue));
  DatagramBuffers buffers = std::move(*DatagramBuffers::create(domain, 1, 64));
  *(buffers.payload(0).data() - 1) = std::byte{0xff};
  ASSERT_TRUE(pair.post_receive(buffers, 0, 5));
  EXPECT_EQ(fake::posted_receives(pair.get()), 1U);
  EXPECT_EQ(buffers.grh(0)[39], std::byte{0});
}

TEST_F(Objects, AFullSendQueueIsExhausted) {
  const CompletionQueue queue = std::move(*CompletionQueue::create(context, 16));
  UdOptions options;
  options.max_send = 1;
  QueuePair pair = std::move(*QueuePair::create_ud(domain, queue, queue, options));
  ibv_ah_attr attributes{};
  attributes.is_global = 1;
  attributes.port_num = 1;
  ibv_ah* address = ibv_create_ah(domain.get(), &attributes);
  EXPECT_TRUE(pair.post_send({.address = address, .qpn = 1, .qkey = 1}, ibv_sge{}, 0, 0));
  const Status full = pair.post_send({.address = address, .qpn = 1, .qkey = 1}, ibv_sge{}, 0, 0);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::kExhausted);
  fake::complete_sends(pair.get(), 1);
  ibv_destroy_ah(address);
}

struct WithChannel : Objects {
  CompletionChannel channel = std::move(*CompletionChannel::create(context));
  CompletionQueue queue = std::move(*CompletionQueue::create(context, 16, channel));
};

ibv_wc completion(std::uint64_t wr_id) {
  ibv_wc wc{};
  wc.wr_id = wr_id;
  return wc;
}

TEST_F(WithChannel, WaitReturnsWhatIsThere) {
  fake::push_completion(queue.get(), completion(4));
  std::vector<ibv_wc> out(4);
  EXPECT_EQ(*queue.wait(out, Deadline::never()), 1U);
  EXPECT_EQ(out[0].wr_id, 4U);
}

// The one that so many lose: between the last poll and the arming.
TEST_F(WithChannel, ACompletionBetweenPollAndArmIsNotMissed) {
  fake::set_arm_hook([](ibv_cq* raw) { fake::push_completion(raw, completion(9)); });
  std::vector<ibv_wc> out(4);
  EXPECT_EQ(*queue.wait(out, Deadline::never()), 1U);
  EXPECT_EQ(out[0].wr_id, 9U);
}

TEST_F(WithChannel, WaitWakesUpForAnEvent) {
  std::thread other([&] { fake::push_completion(queue.get(), completion(3)); });
  std::vector<ibv_wc> out(4);
  EXPECT_EQ(*queue.wait(out, Deadline::never()), 1U);
  other.join();
}

TEST_F(WithChannel, WaitEndsAtItsDeadline) {
  std::vector<ibv_wc> out(4);
  EXPECT_EQ(*queue.wait(out, Deadline::at({})), 0U);
}

// A queue that always has something by the second poll never reads its channel: what was raised there must not pile up.
TEST_F(WithChannel, EventsOfCompletionsThatWerePolledDoNotPileUp) {
  fake::set_arm_hook([](ibv_cq* raw) { fake::push_completion(raw, completion(9)); });
  std::vector<ibv_wc> out(4);
  for (int round = 0; round < 100; ++round) EXPECT_EQ(*queue.wait(out, Deadline::never()), 1U);
  int left = 0;
  while (*queue.take_event()) ++left;
  EXPECT_LE(left, 1);
}

// An event of a completion that a poll already took: no reason to come back empty-handed, nor to stop listening.
TEST_F(WithChannel, AStaleEventDoesNotEndTheWait) {
  std::vector<ibv_wc> out(4);
  ASSERT_TRUE(queue.arm());
  fake::push_completion(queue.get(), completion(1));
  ASSERT_EQ(*queue.poll(out), 1U);
  std::thread other([&] { fake::push_completion(queue.get(), completion(2)); });
  EXPECT_EQ(*queue.wait(out, Deadline::never()), 1U);
  EXPECT_EQ(out[0].wr_id, 2U);
  other.join();
}

TEST_F(WithChannel, EachOfManyCompletionsIsSeenOnce) {
  constexpr std::uint64_t kMany = 2000;
  std::thread other([&] {
    for (std::uint64_t i = 0; i < kMany; ++i) fake::push_completion(queue.get(), completion(i));
  });
  std::array<ibv_wc, 3> out{};
  for (std::uint64_t next = 0; next < kMany;) {
    const std::size_t got = *queue.wait(out, Deadline::in(std::chrono::seconds(60)));
    ASSERT_NE(got, 0U) << "missed after " << next;
    for (std::size_t i = 0; i < got; ++i) ASSERT_EQ(out[i].wr_id, next++);
  }
  other.join();
}

TEST_F(WithChannel, WaitingWithoutRoomIsRefused) {
  EXPECT_EQ(queue.wait({}, Deadline::never()).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(WithChannel, EventsTakenAreAcknowledgedBeforeTheQueueGoes) {
  ASSERT_TRUE(queue.arm());
  fake::push_completion(queue.get(), completion(1));
  EXPECT_TRUE(*queue.take_event());
  EXPECT_FALSE(*queue.take_event());
  EXPECT_TRUE(queue.close());
}

TEST_F(Objects, WaitWithoutAChannelIsRefused) {
  CompletionQueue queue = std::move(*CompletionQueue::create(context, 16));
  std::vector<ibv_wc> out(4);
  EXPECT_FALSE(queue.wait(out, Deadline::at({})));
}

TEST_F(Objects, TheGidTableIsReadOnceUntilInvalidated) {
  fake::set_gids(
      "fake0", 1,
      {{}, {*parse_gid("10.0.0.1"), IBV_GID_TYPE_ROCE_V1, 3}, {}, {*parse_gid("10.0.0.1"), IBV_GID_TYPE_ROCE_V2, 3}});
  GidTable table(context.get());
  const GidEntries entries = *table.entries();
  ASSERT_EQ(entries->size(), 2U);
  EXPECT_EQ((*entries)[1],
            (GidEntry{.gid = *parse_gid("10.0.0.1"), .type = GidType::kRoceV2, .port = 1, .index = 3, .netdev = 3}));
  const std::uint64_t reads = fake::table_reads();
  EXPECT_EQ(*table.entries(), entries);
  EXPECT_EQ(fake::table_reads(), reads);
  fake::set_gids("fake0", 1, {});
  table.invalidate();
  EXPECT_TRUE((*table.entries())->empty());
  EXPECT_EQ(entries->size(), 2U);
}

TEST_F(Objects, ADeviceOf255PortsIsLookedThroughOnce) {
  domain = ProtectionDomain();
  context = Context();
  fake::reset();
  fake::Port down;
  down.state = IBV_PORT_DOWN;
  fake::add_device("wide0", std::vector<fake::Port>(255, down));
  const Result<Context> none = Context::open_first_usable();
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("port 255 is"));
  context = std::move(*Context::open("wide0"));
  EXPECT_FALSE(context.first_active_port());
}

TEST_F(Objects, AGidTableThatCannotBeReadIsAnError) {
  fake::fail_call("ibv_query_gid_table", EOPNOTSUPP);
  GidTable table(context.get());
  const Result<GidEntries> entries = table.entries();
  ASSERT_FALSE(entries);
  EXPECT_EQ(entries.error().code, ErrorCode::kUnsupported);
}

const Finding* find(const std::vector<Finding>& findings, const std::string& check) {
  for (const Finding& finding : findings) {
    if (finding.check == check) return &finding;
  }
  return nullptr;
}

TEST_F(Objects, PreflightNamesAPortThatIsDownAndATableThatIsEmpty) {
  EXPECT_LT(worst(preflight(context.get(), 1)), Severity::kFailure);
  fake::Port down;
  down.state = IBV_PORT_DOWN;
  fake::set_port("fake0", 1, down);
  const std::vector<Finding> findings = preflight(context.get(), 1);
  EXPECT_EQ(find(findings, "port_state")->severity, Severity::kFailure);
  EXPECT_EQ(find(findings, "gid_table")->severity, Severity::kFailure);
  EXPECT_THAT(find(findings, "gid_table")->remedy, HasSubstr("container"));
  ASSERT_NE(find(findings, "memlock"), nullptr);
}

TEST_F(Objects, PreflightNamesAPeerOfAnotherFamily) {
  const std::vector<Finding> findings = preflight(context.get(), 1, parse_gid("fe80::2"));
  EXPECT_EQ(find(findings, "source_for_peer")->severity, Severity::kFailure);
  EXPECT_THAT(find(findings, "source_for_peer")->evidence, HasSubstr("link-local IPv6"));
}

TEST(EffectiveMtu, IsTheLeastOfBothPortsAndTheRoute) {
  EXPECT_EQ(effective_mtu(4096, 4096, 0, true), 4096U);
  EXPECT_EQ(effective_mtu(4096, 1024, 0, true), 1024U);
  EXPECT_EQ(effective_mtu(0, 0, 0, true), 4096U);
  EXPECT_EQ(effective_mtu(4096, 4096, 1500, true), 1024U);
  EXPECT_EQ(effective_mtu(4096, 4096, 9000, false), 4096U);
  EXPECT_EQ(effective_mtu(4096, 4096, 4096 + 56, true), 4096U);
  EXPECT_EQ(effective_mtu(4096, 4096, 4096 + 55, true), 2048U);
  EXPECT_EQ(effective_mtu(4096, 4096, 40, false), 256U);
}

TEST(VerbsError, UnderstandsEachWayOfReturningAnErrno) {
  errno = EPERM;
  EXPECT_EQ(rdma::errno_of(EINVAL), EINVAL);
  EXPECT_EQ(rdma::errno_of(-EINVAL), EINVAL);
  EXPECT_EQ(rdma::errno_of(-1), EPERM);
}

TEST_F(Objects, ACompletionQueueIsListedForWhoUsesItAndThenForWhoUsedItLast) {
  const ProtectionDomain other = std::move(*ProtectionDomain::create(context));
  CompletionQueue queue = std::move(*CompletionQueue::create(context, 16));
  const auto listed = [](const ProtectionDomain& of) {
    std::string all;
    for (const LiveObject& object : live_objects(of.get())) all += object.what + "; ";
    return all;
  };
  EXPECT_EQ(listed(domain), "");
  QueuePair first = std::move(*QueuePair::create_ud(domain, queue, queue));
  EXPECT_THAT(listed(domain), HasSubstr("completion queue"));
  QueuePair second = std::move(*QueuePair::create_ud(other, queue, queue));
  EXPECT_THAT(listed(domain), HasSubstr("completion queue"));
  EXPECT_THAT(listed(other), HasSubstr("completion queue"));
  ASSERT_TRUE(first.close());
  EXPECT_EQ(listed(domain), "");
  EXPECT_THAT(listed(other), HasSubstr("completion queue"));
  ASSERT_TRUE(second.close());
  EXPECT_EQ(listed(other), "completion queue on fake0; ");
  EXPECT_EQ(listed(domain), "");
  detail::note_new_domain(other.get());  // as one at the address of one that is gone
  EXPECT_EQ(listed(other), "");
  ASSERT_TRUE(queue.close());
}

// Of no domain, or the domain itself: listed all the same, and named where the device does not let go.
TEST_F(Objects, ADomainAndAnUnusedQueueAreNamedWithThePlaceThatMadeThem) {
  const auto words = [] {
    std::string all;
    for (const LiveObject& object : live_objects()) all += in_words(object) + "; ";
    return all;
  };
  const auto line = [](unsigned number) { return "objects_test.cc:" + std::to_string(number); };
  const unsigned made = __LINE__ + 1;
  ProtectionDomain another = std::move(*ProtectionDomain::create(context));
  CompletionQueue queue = std::move(*CompletionQueue::create(context, 16));
  EXPECT_THAT(words(), HasSubstr("protection domain on fake0 (made at "));
  EXPECT_THAT(words(), HasSubstr(line(made)));
  EXPECT_THAT(words(), HasSubstr(line(made + 1)));
  ibv_mr* const region = ibv_reg_mr(another.get(), &queue, sizeof queue, 0);
  ASSERT_NE(region, nullptr);
  const Status kept = another.close();
  ASSERT_FALSE(kept);
  EXPECT_THAT(kept.error().message, HasSubstr(line(made)));
  ASSERT_EQ(ibv_dereg_mr(region), 0);
  ASSERT_TRUE(another.close());
  ASSERT_TRUE(queue.close());
  EXPECT_THAT(words(), ::testing::Not(HasSubstr(line(made))));
}

}  // namespace
}  // namespace verbena
