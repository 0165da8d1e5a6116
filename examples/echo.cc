// Datagrams to oneself and back, through managed address handles: the whole of the middleware in one program.
//
//   verbena run -- ./echo_example          on the software RNIC
//   ./echo_example mlx5_0                  on any verbs device
//
// One queue pair asks, the other answers to whoever asked: it learns the address from the datagram itself, and finds it
// in the directory from the second time on.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "verbena/address_directory.h"
#include "verbena/completion_queue.h"
#include "verbena/device.h"
#include "verbena/memory_region.h"
#include "verbena/preflight.h"
#include "verbena/protection_domain.h"
#include "verbena/queue_pair.h"

namespace {

using namespace verbena;
using namespace std::chrono_literals;

constexpr std::size_t kPayload = 64;
constexpr std::uint64_t kRounds = 1000;
constexpr std::uint32_t kQkey = 0x11111111;

// A queue pair with one buffer to send from and one to receive into.
struct End {
  CompletionQueue sent;
  CompletionChannel channel;
  CompletionQueue received;
  DatagramBuffers buffers;  // 0: to send, 1: to receive
  QueuePair pair;
  AhSender sender;
};

Result<End> make_end(const Context& context, const ProtectionDomain& domain, std::uint8_t port,
                     AhDirectory& directory) {
  End end;
  Result<CompletionQueue> sent = CompletionQueue::create(context, 16);
  if (!sent) return tl::make_unexpected(sent.error());
  Result<CompletionChannel> channel = CompletionChannel::create(context);
  if (!channel) return tl::make_unexpected(channel.error());
  Result<CompletionQueue> received = CompletionQueue::create(context, 16, *channel);
  if (!received) return tl::make_unexpected(received.error());
  Result<DatagramBuffers> buffers = DatagramBuffers::create(domain, 2, kPayload);
  if (!buffers) return tl::make_unexpected(buffers.error());
  UdOptions options;
  options.port = port;
  options.qkey = kQkey;
  Result<QueuePair> pair = QueuePair::create_ud(domain, *sent, *received, options);
  if (!pair) return tl::make_unexpected(pair.error());
  Result<AhSender> sender = directory.make_sender();
  if (!sender) return tl::make_unexpected(sender.error());
  return End{std::move(*sent),    std::move(*channel), std::move(*received),
             std::move(*buffers), std::move(*pair),    std::move(*sender)};
}

// Sends what is in buffer 0, and waits until it has left.
Status send(End& from, ibv_ah* address, std::uint32_t qpn) {
  const ibv_sge payload = from.buffers.send_sge(0, kPayload);
  Status posted = from.pair.post_send({.address = address, .qpn = qpn, .qkey = kQkey}, payload, from.sender.position(),
                                      IBV_SEND_SIGNALED);
  if (!posted) {
    from.sender.retract(1);
    return posted;
  }
  std::array<ibv_wc, 1> completion{};
  for (;;) {
    const Result<std::size_t> got = from.sent.poll(completion);
    if (!got) return tl::make_unexpected(got.error());
    if (*got == 1) break;
  }
  from.sender.completed_through(completion[0].wr_id);
  if (completion[0].status == IBV_WC_SUCCESS) return {};
  return failure(ErrorCode::kUnavailable, std::string("send failed: ") + ibv_wc_status_str(completion[0].status));
}

Result<ibv_wc> receive(End& at) {
  std::array<ibv_wc, 1> completion{};
  const Result<std::size_t> got = at.received.wait(completion, Deadline::in(5s));
  if (!got) return tl::make_unexpected(got.error());
  if (*got == 0) return failure(ErrorCode::kTimedOut, "no datagram within five seconds");
  return completion[0];
}

// Answers one datagram to whoever sent it.
Status answer(End& end, AhDirectory& directory) {
  const Result<ibv_wc> request = receive(end);
  if (!request) return tl::make_unexpected(request.error());
  const Result<Destination> back = directory.reply_to(*request, end.buffers.grh(1));
  if (!back) return tl::make_unexpected(back.error());
  const std::span<const std::byte> text = end.buffers.received(1, request->byte_len);
  std::memcpy(end.buffers.payload(0).data(), text.data(), text.size());
  ibv_ah* address = end.sender.next(*back);
  if (address == nullptr) {  // the first time only
    const Result<AhHandle> handle = directory.acquire(*back, Deadline::in(5s));
    if (!handle) return tl::make_unexpected(handle.error());
    address = end.sender.next(*handle);
    if (address == nullptr) return failure(ErrorCode::kUnavailable, "the address went away");
  }
  return send(end, address, request->src_qp);
}

Status ask(End& asker, End& answerer, AhDirectory& directory, const AhHandle& peer, std::uint64_t round) {
  std::memcpy(asker.buffers.payload(0).data(), &round, sizeof round);
  if (Status posted = answerer.pair.post_receive(answerer.buffers, 1, 0); !posted) return posted;
  if (Status posted = asker.pair.post_receive(asker.buffers, 1, 0); !posted) return posted;
  ibv_ah* address = asker.sender.next(peer);
  if (address == nullptr) return failure(ErrorCode::kUnavailable, "the address went away");
  if (Status sent = send(asker, address, answerer.pair.number()); !sent) return sent;
  if (Status answered = answer(answerer, directory); !answered) return answered;
  const Result<ibv_wc> reply = receive(asker);
  if (!reply) return tl::make_unexpected(reply.error());
  std::uint64_t echoed = 0;
  std::memcpy(&echoed, asker.buffers.received(1, reply->byte_len).data(), sizeof echoed);
  if (echoed != round) return failure(ErrorCode::kInternal, "the echo differs");
  return {};
}

Result<Gid> own_address(const Context& context, std::uint8_t port) {
  const Result<std::vector<GidEntry>> table = read_gid_table(context.get());
  if (!table) return tl::make_unexpected(table.error());
  for (const GidEntry& entry : *table) {
    if (entry.port == port && !entry.gid.is_link_local()) return entry.gid;
  }
  return failure(ErrorCode::kNotFound, "the port has no address that can be routed");
}

Status run(const char* device) {
  const Result<Context> context = device != nullptr ? Context::open(device) : Context::open_first_usable();
  if (!context) return tl::make_unexpected(context.error());
  const Result<PortView> port = context->first_active_port();
  if (!port) return tl::make_unexpected(port.error());
  const Result<ProtectionDomain> domain = ProtectionDomain::create(*context);
  if (!domain) return tl::make_unexpected(domain.error());
  Result<AhDirectory> directory = AhDirectory::create(*domain, port->port);
  if (!directory) return tl::make_unexpected(directory.error());
  Result<End> asker = make_end(*context, *domain, port->port, *directory);
  if (!asker) return tl::make_unexpected(asker.error());
  Result<End> answerer = make_end(*context, *domain, port->port, *directory);
  if (!answerer) return tl::make_unexpected(answerer.error());

  const Result<Gid> self = own_address(*context, port->port);
  if (!self) return tl::make_unexpected(self.error());
  Destination destination;
  destination.gid = *self;
  const Result<AhHandle> peer = directory->acquire(destination, Deadline::in(5s));
  if (!peer) return tl::make_unexpected(peer.error());
  std::printf("%s: %s\n", context->name().c_str(), directory->effective(*peer)->explanation.c_str());
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    if (Status status = ask(*asker, *answerer, *directory, *peer, round); !status) return status;
  }
  const AhStats stats = directory->stats();
  for (const AhStatRow& row : ah_stat_rows()) {
    if (stats.*row.value != 0)
      std::printf("  %-10s %8llu\n", row.name, static_cast<unsigned long long>(stats.*row.value));
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = run(argc > 1 ? argv[1] : nullptr);
  if (status) return 0;
  std::fprintf(stderr, "echo_example: %s\n", status.error().message.c_str());
  return 1;
}
