// A device of two ports: what one protection domain allows, and what a second one keeps out.
//
//   verbena run --devices eth0+eth1 -- ./dual_port_example        on the software RNIC
//   ./dual_port_example mlx4_0                                    on any verbs device of two ports
//
// One protection domain has a queue pair on each port, and each sends to the other: domains are of the device, not of a
// port. Then the first queue pair is given an address handle of a second domain. Nothing stops the program from posting
// that; the device finds out, and completes the send with IBV_WC_LOC_QP_OP_ERR.
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "verbena/address_directory.h"
#include "verbena/completion_queue.h"
#include "verbena/device.h"
#include "verbena/gid_table.h"
#include "verbena/memory_region.h"
#include "verbena/protection_domain.h"
#include "verbena/queue_pair.h"

namespace {

using namespace verbena;
using namespace std::chrono_literals;

constexpr std::size_t kPayload = 64;
constexpr std::size_t kToSend = 0;
constexpr std::size_t kToReceive = 1;

// A queue pair on one port. Its address handles are of its protection domain and of its port: both come from the
// directory that made them.
struct End {
  CompletionQueue sent;
  CompletionQueue received;
  DatagramBuffers buffers;
  QueuePair pair;
  AhDirectory directory;
  AhSender sender;
};

Result<End> make_end(const Context& context, const ProtectionDomain& domain, std::uint8_t port) {
  Result<CompletionQueue> sent = CompletionQueue::create(context, 16);
  if (!sent) return tl::make_unexpected(sent.error());
  Result<CompletionQueue> received = CompletionQueue::create(context, 16);
  if (!received) return tl::make_unexpected(received.error());
  Result<DatagramBuffers> buffers = DatagramBuffers::create(domain, 2, kPayload);
  if (!buffers) return tl::make_unexpected(buffers.error());
  UdOptions options;
  options.port = port;
  Result<QueuePair> pair = QueuePair::create_ud(domain, *sent, *received, options);
  if (!pair) return tl::make_unexpected(pair.error());
  Result<AhDirectory> directory = AhDirectory::create(domain, port);
  if (!directory) return tl::make_unexpected(directory.error());
  Result<AhSender> sender = directory->make_sender();
  if (!sender) return tl::make_unexpected(sender.error());
  return End{std::move(*sent), std::move(*received),  std::move(*buffers),
             std::move(*pair), std::move(*directory), std::move(*sender)};
}

Result<Destination> address_of(const Context& context, std::uint8_t port) {
  const Result<std::vector<GidEntry>> table = read_gid_table(context.get());
  if (!table) return tl::make_unexpected(table.error());
  Destination destination;
  for (const GidEntry& entry : *table) {
    if (entry.port != port || entry.gid.is_link_local()) continue;
    destination.gid = entry.gid;
    return destination;
  }
  return failure(ErrorCode::kNotFound,
                 "port " + std::to_string(port) + " has no address that can be routed: give its interface one");
}

Result<ibv_wc> next_completion(CompletionQueue& queue) {
  std::array<ibv_wc, 1> completion{};
  for (const Deadline deadline = Deadline::in(5s); !deadline.passed();) {
    const Result<std::size_t> got = queue.poll(completion);
    if (!got) return tl::make_unexpected(got.error());
    if (*got == 1) return completion[0];
  }
  return failure(ErrorCode::kTimedOut, "no completion within five seconds");
}

// Sends from a queue pair with an address handle of `addresses`, which need not be of the same domain.
Result<ibv_wc> send(End& from, AhSender& addresses, const AhHandle& handle, std::uint32_t qpn) {
  ibv_ah* const address = addresses.next(handle);
  if (address == nullptr) return failure(ErrorCode::kUnavailable, "the address went away");
  const Status posted = from.pair.post_send({.address = address, .qpn = qpn}, from.buffers.send_sge(kToSend, kPayload),
                                            addresses.position(), IBV_SEND_SIGNALED);
  if (!posted) {
    addresses.retract(1);
    return tl::make_unexpected(posted.error());
  }
  Result<ibv_wc> completion = next_completion(from.sent);
  if (completion) addresses.completed_through(completion->wr_id);
  return completion;
}

// One datagram from a port to the other, within one protection domain.
Status greet(const Context& context, End& from, End& to, std::uint8_t from_port, std::uint8_t to_port) {
  const Result<Destination> destination = address_of(context, to_port);
  if (!destination) return tl::make_unexpected(destination.error());
  const Result<AhHandle> handle = from.directory.acquire(*destination, Deadline::in(5s));
  if (!handle) return tl::make_unexpected(handle.error());
  const std::string text = "hello from port " + std::to_string(from_port);
  std::memcpy(from.buffers.payload(kToSend).data(), text.c_str(), text.size() + 1);
  if (Status posted = to.pair.post_receive(to.buffers, kToReceive, 0); !posted) return posted;
  const Result<ibv_wc> sent = send(from, from.sender, *handle, to.pair.number());
  if (!sent) return tl::make_unexpected(sent.error());
  if (sent->status != IBV_WC_SUCCESS) return failure(ErrorCode::kInternal, ibv_wc_status_str(sent->status));
  const Result<ibv_wc> received = next_completion(to.received);
  if (!received) return tl::make_unexpected(received.error());
  const auto payload = to.buffers.received(kToReceive, received->byte_len);
  std::printf("one domain: port %d received \"%s\"\n", to_port, reinterpret_cast<const char*>(payload.data()));
  return {};
}

// The same send, but with an address handle of a second domain of the same device and port.
Status trespass(const Context& context, End& from, End& to) {
  const Result<ProtectionDomain> other = ProtectionDomain::create(context);
  if (!other) return tl::make_unexpected(other.error());
  Result<AhDirectory> directory = AhDirectory::create(*other, 1);
  if (!directory) return tl::make_unexpected(directory.error());
  Result<AhSender> sender = directory->make_sender();
  if (!sender) return tl::make_unexpected(sender.error());
  const Result<Destination> destination = address_of(context, 2);
  if (!destination) return tl::make_unexpected(destination.error());
  const Result<AhHandle> handle = directory->acquire(*destination, Deadline::in(5s));
  if (!handle) return tl::make_unexpected(handle.error());
  const Result<ibv_wc> sent = send(from, *sender, *handle, to.pair.number());
  if (!sent) return tl::make_unexpected(sent.error());
  if (sent->status != IBV_WC_LOC_QP_OP_ERR) {
    return failure(ErrorCode::kInternal, std::string("the device let it through: ") + ibv_wc_status_str(sent->status));
  }
  std::printf(
      "two domains: the send was refused with status %d (%s): an address handle may be used only by queue pairs "
      "of its own protection domain. `verbena doctor explain wc %d` says more.\n",
      sent->status, ibv_wc_status_str(sent->status), sent->status);
  return {};
}

Status run(const char* device) {
  const Result<Context> context = device != nullptr ? Context::open(device) : Context::open_first_usable();
  if (!context) return tl::make_unexpected(context.error());
  const Result<ibv_device_attr> attributes = context->query_device();
  if (!attributes) return tl::make_unexpected(attributes.error());
  if (attributes->phys_port_cnt < 2) {
    return failure(ErrorCode::kNotFound, context->name() +
                                             " has one port. The software RNIC has two on `verbena run "
                                             "--devices eth0+eth1`");
  }
  const Result<ProtectionDomain> domain = ProtectionDomain::create(*context);
  if (!domain) return tl::make_unexpected(domain.error());
  Result<End> one = make_end(*context, *domain, 1);
  if (!one) return tl::make_unexpected(one.error());
  Result<End> two = make_end(*context, *domain, 2);
  if (!two) return tl::make_unexpected(two.error());
  if (Status status = greet(*context, *one, *two, 1, 2); !status) return status;
  if (Status status = greet(*context, *two, *one, 2, 1); !status) return status;
  return trespass(*context, *one, *two);
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = run(argc > 1 ? argv[1] : nullptr);
  if (status) return 0;
  std::fprintf(stderr, "dual_port_example: %s\n", status.error().message.c_str());
  return 1;
}
