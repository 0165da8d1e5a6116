// The device without the verbs above it: what one 64-byte datagram costs from the post to the completion at the other
// end, through the ring of the process with itself, on one thread; and what a poll costs that finds nothing.
#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "device/address_handle.h"
#include "device/device.h"
#include "device/memory_region.h"
#include "device/queue_pair.h"

namespace verbena::device {
namespace {

constexpr std::uint32_t kQkey = 0x11111111;
constexpr std::uint32_t kDepth = 256;

// One queue pair that sends to itself over the loopback interface.
class Rig {
 public:
  Rig() {
    setenv("VERBENA_DEVICES", "lo", 1);
    context_ = Context::open(*device_list()[0]).value();
    domain_ = ProtectionDomain::create(*context_).value();
    queue = CompletionQueue::create(*context_, 4 * kDepth, nullptr, 1).value();
    memory_ = MemoryRegion::create(*domain_, address(), buffer_.size(), address(), engine::kLocalWrite).value();
    QpInit init;
    init.send_queue = init.receive_queue = queue.get();
    init.capabilities = {
        .max_send_wr = kDepth, .max_recv_wr = kDepth, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 64};
    pair = QueuePair::create(*domain_, init).value();
    bring_up();
    engine::AddressVector vector;
    vector.destination = *parse_gid("127.0.0.1");
    vector.is_global = true;
    vector.port = 1;
    handle_ = AddressHandle::create(*domain_, vector).value();
    to_send_ = {address(), 64, memory_->key()};
    to_fill_ = {address() + 4096, 4096, memory_->key()};
    request.flags = engine::kSendSignaled;
    request.sges = std::span(&to_send_, 1);
    request.address = &handle_->engine();
    request.remote_qpn = pair->qpn().value();
    request.remote_qkey = kQkey;
  }

  void post_receive() { QueuePair::ReceiveBatch(*pair).post(0, std::span(&to_fill_, 1)); }
  std::size_t drain(std::size_t wanted) {
    std::size_t got = 0;
    while (got < wanted) {
      const int count = queue->poll(completions_);
      if (count < 0) std::abort();
      got += static_cast<std::size_t>(count);
    }
    return got;
  }

  std::unique_ptr<CompletionQueue> queue;
  std::unique_ptr<QueuePair> pair;
  SendRequest request;

 private:
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(buffer_.data()); }
  void bring_up() {
    QpAttributes attributes;
    attributes.port = 1;
    attributes.qkey = kQkey;
    const auto step = [&](QpState state, engine::AttrMask mask) {
      attributes.state = state;
      if (!pair->modify(attributes, engine::kAttrState | mask)) std::abort();
    };
    step(QpState::kInit, engine::kAttrPkeyIndex | engine::kAttrPort | engine::kAttrQkey);
    step(QpState::kReadyToReceive, 0);
    step(QpState::kReadyToSend, engine::kAttrSendPsn);
  }

  std::vector<std::byte> buffer_ = std::vector<std::byte>(8192);
  std::shared_ptr<Context> context_;
  std::unique_ptr<ProtectionDomain> domain_;
  std::unique_ptr<MemoryRegion> memory_;
  std::unique_ptr<AddressHandle> handle_;
  Sge to_send_;
  Sge to_fill_;
  std::array<Completion, 16> completions_;
};

Rig& rig() {
  static Rig& made = *new Rig;
  return made;
}

void BM_DatagramToSelf(benchmark::State& state) {
  for (auto _ : state) {
    rig().post_receive();
    QueuePair::SendBatch(*rig().pair).post(rig().request);
    rig().drain(2);
  }
}
BENCHMARK(BM_DatagramToSelf);

void BM_DatagramToSelfInBatchesOf16(benchmark::State& state) {
  for (auto _ : state) {
    for (int i = 0; i < 16; ++i) rig().post_receive();
    {
      QueuePair::SendBatch batch(*rig().pair);
      for (int i = 0; i < 16; ++i) batch.post(rig().request);
    }
    rig().drain(32);
  }
  state.SetItemsProcessed(state.iterations() * 16);
}
BENCHMARK(BM_DatagramToSelfInBatchesOf16);

void BM_EmptyPoll(benchmark::State& state) {
  std::array<Completion, 16> completions;
  for (auto _ : state) benchmark::DoNotOptimize(rig().queue->poll(completions));
}
BENCHMARK(BM_EmptyPoll);

}  // namespace
}  // namespace verbena::device
