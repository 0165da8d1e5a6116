#include "verbena/live_objects.h"

#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fake_verbs/fake_verbs.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "verbena/completion_queue.h"
#include "verbena/protection_domain.h"
#include "verbena/queue_pair.h"
#include "verbena/release_failure.h"

namespace verbena {
namespace {

class LiveObjects : public ::testing::Test {
 protected:
  LiveObjects() {
    fake::reset();
    fake::add_device("fake0");
    context = std::move(*Context::open("fake0"));
    domain = std::move(*ProtectionDomain::create(context));
    queue = std::move(*CompletionQueue::create(context, 16));
  }

  std::string listed() const {
    std::string all;
    for (const LiveObject& object : live_objects(domain.get())) all += object.what + "; ";
    return all;
  }

  Context context;
  ProtectionDomain domain;
  CompletionQueue queue;
};

TEST_F(LiveObjects, WhatTheDeviceKeepsIsListedWhateverComesToLieWhereItsOwnerLay) {
  std::optional<QueuePair> left = std::move(*QueuePair::create_ud(domain, queue, queue));
  const std::string name = fmt::format("queue pair {:#x};", left->number());
  ibv_qp* const raw = left->get();
  fake::fail_call("ibv_destroy_qp", EBUSY);
  set_release_failure_handler([](const Error&) {});
  left.reset();
  set_release_failure_handler({});
  fake::fail_call("ibv_destroy_qp", 0);
  EXPECT_THAT(listed(), ::testing::HasSubstr(name));
  for (int round = 0; round < 8; ++round) {
    std::vector<QueuePair> next;
    for (int i = 0; i < 8; ++i) next.push_back(std::move(*QueuePair::create_ud(domain, queue, queue)));
    EXPECT_THAT(listed(), ::testing::HasSubstr(name));
  }
  EXPECT_THAT(listed(), ::testing::HasSubstr(name));
  ibv_destroy_qp(raw);
}

}  // namespace
}  // namespace verbena
