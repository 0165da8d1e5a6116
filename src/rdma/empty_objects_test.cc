// What is empty, by default or moved from, answers; it ends no process.
#include <array>
#include <utility>

#include <fake_verbs/fake_verbs.h>
#include <gtest/gtest.h>

#include "verbena/completion_queue.h"
#include "verbena/device.h"
#include "verbena/gid_table.h"
#include "verbena/memory_region.h"
#include "verbena/preflight.h"
#include "verbena/protection_domain.h"
#include "verbena/queue_pair.h"
#include "verbena/resolve.h"

namespace verbena {
namespace {

template <class Answer>
void expect_refused(const Answer& answer) {
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kInvalidArgument) << answer.error().message;
}

template <class Owner>
Owner taken_from(Owner& owner) {
  return std::move(owner);
}

class EmptyObjects : public ::testing::Test {
 protected:
  EmptyObjects() {
    fake::reset();
    fake::add_device("fake0");
    context = std::move(*Context::open("fake0"));
    domain = std::move(*ProtectionDomain::create(context));
  }

  Context context;
  ProtectionDomain domain;
};

TEST_F(EmptyObjects, AContextHasNoNameAndRefuses) {
  const Context empty;
  EXPECT_EQ(empty.name(), "");
  expect_refused(empty.query_device());
  expect_refused(empty.query_port(1));
  expect_refused(empty.first_active_port());
  expect_refused(ProtectionDomain::create(empty));
  expect_refused(CompletionChannel::create(empty));
  expect_refused(CompletionQueue::create(empty, 1));
  expect_refused(query_port(nullptr, 1));
  expect_refused(read_gid_table(nullptr));
  EXPECT_EQ(worst(preflight(nullptr, 1)), Severity::kFailure);
}

TEST_F(EmptyObjects, AListIsOfNoDevices) {
  DeviceList list = std::move(*DeviceList::read());
  const DeviceList moved_to = taken_from(list);
  EXPECT_EQ(moved_to.size(), 1U);
  EXPECT_TRUE(list.empty());
  EXPECT_TRUE(list.names().empty());
}

TEST_F(EmptyObjects, QueuesRefuse) {
  CompletionQueue queue;
  std::array<ibv_wc, 1> out{};
  expect_refused(queue.poll(out));
  expect_refused(queue.arm());
  expect_refused(queue.take_event());
  expect_refused(queue.wait(out, Deadline::at({})));
  QueuePair pair;
  DatagramBuffers buffers;
  expect_refused(pair.post_receive(buffers, 0, 0));
  expect_refused(pair.post_send({}, {}, 0, 0));
  expect_refused(pair.flush());
  EXPECT_EQ(pair.number(), 0U);
  expect_refused(QueuePair::create_ud(domain, queue, queue));
}

TEST_F(EmptyObjects, MemoryHasNoKeysAndNoSlots) {
  const MemoryRegion region;
  EXPECT_EQ(region.lkey(), 0U);
  EXPECT_EQ(region.rkey(), 0U);
  DatagramBuffers buffers = std::move(*DatagramBuffers::create(domain, 4, 64));
  const DatagramBuffers moved_to = taken_from(buffers);
  EXPECT_EQ(moved_to.size(), 4U);
  EXPECT_EQ(buffers.size(), 0U);
  EXPECT_EQ(buffers.payload_capacity(), 0U);
  CompletionQueue queue = std::move(*CompletionQueue::create(context, 4));
  QueuePair pair = std::move(*QueuePair::create_ud(domain, queue, queue));
  expect_refused(pair.post_receive(buffers, 0, 0));
  expect_refused(MemoryRegion::create(ProtectionDomain(), {}));
}

TEST_F(EmptyObjects, ALookUpThatIsNoneIsRefused) {
  expect_refused(resolve_host("storage-7", Deadline::at({}), HostLookup()));
}

}  // namespace
}  // namespace verbena
