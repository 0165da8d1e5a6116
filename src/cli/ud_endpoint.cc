#include "cli/ud_endpoint.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "cli/active_port.h"

namespace verbena::cli {
namespace {

constexpr std::uint64_t kSignalEach = 16;
constexpr std::size_t kBatch = 32;
constexpr std::uint32_t kInlineBytes = 64;
// A work request's number: the queue pair above, the position in its send queue or its buffer below.
constexpr unsigned kPositionBits = 48;
constexpr std::uint64_t kPositionMask = (std::uint64_t{1} << kPositionBits) - 1;

std::uint64_t work_id(std::size_t queue_pair, std::uint64_t position) noexcept {
  return (std::uint64_t{queue_pair} << kPositionBits) | (position & kPositionMask);
}

std::size_t queue_pair_of(std::uint64_t id) noexcept {
  return static_cast<std::size_t>(id >> kPositionBits);
}

// Bit 31 would mean "the queue pair's own".
std::uint32_t random_qkey() {
  std::random_device random;
  return static_cast<std::uint32_t>(random()) & 0x7fffffff;
}

int preference(const Gid& gid, const Gid& first) noexcept {
  if (gid == first) return 0;
  if (gid.is_loopback()) return 5;
  if (gid.is_link_local()) return 4;
  if (gid.is_unique_local()) return 3;
  return gid.is_ipv4_mapped() ? 1 : 2;
}

}  // namespace

Result<std::unique_ptr<UdEndpoint>> UdEndpoint::open(const UdEndpointOptions& options) {
  std::unique_ptr<UdEndpoint> endpoint(new UdEndpoint());
  if (Status status = endpoint->open_device(options.port); !status) return tl::make_unexpected(status.error());
  if (Status status = endpoint->make_queues(options); !status) return tl::make_unexpected(status.error());
  if (Status status = endpoint->make_queue_pairs(options); !status) return tl::make_unexpected(status.error());
  return endpoint;
}

UdEndpoint::~UdEndpoint() {
  queue_pairs_.clear();
  for (std::size_t i = 0; i < senders_.size(); ++i) {
    complete(i, send_queues_[i].posted);
    senders_[i].drained();
  }
}

Status UdEndpoint::open_device(const PortName& name) {
  auto context = name.device.empty() ? Context::open_first_usable() : Context::open(name.device);
  if (!context) return tl::make_unexpected(context.error());
  context_ = std::move(*context);
  const auto device = context_.query_device();
  if (!device) return tl::make_unexpected(device.error());
  ports_ = device->phys_port_cnt;
  auto port = name.port == 0 ? context_.first_active_port() : active_port(context_, name.port);
  if (!port) return tl::make_unexpected(port.error());
  port_ = std::move(*port);
  auto domain = ProtectionDomain::create(context_);
  if (!domain) return tl::make_unexpected(domain.error());
  domain_ = std::move(*domain);
  auto directory = AhDirectory::create(domain_, port_.port);
  if (!directory) return tl::make_unexpected(directory.error());
  directory_ = std::move(*directory);
  return {};
}

Status UdEndpoint::make_queues(const UdEndpointOptions& options) {
  send_depth_ = options.send_depth;
  receive_depth_ = options.receive_depth;
  const std::size_t bytes = options.payload_bytes == 0 ? port_.active_mtu : options.payload_bytes;
  payload_bytes_ = static_cast<std::uint32_t>(bytes);
  const int send_entries = static_cast<int>(options.queue_pairs * send_depth_);
  const int receive_entries = static_cast<int>(options.queue_pairs * receive_depth_);
  auto channel = CompletionChannel::create(context_);
  if (!channel) return tl::make_unexpected(channel.error());
  channel_ = std::move(*channel);
  auto send_queue = CompletionQueue::create(context_, send_entries);
  if (!send_queue) return tl::make_unexpected(send_queue.error());
  send_queue_ = std::move(*send_queue);
  auto receive_queue = CompletionQueue::create(context_, receive_entries, channel_);
  if (!receive_queue) return tl::make_unexpected(receive_queue.error());
  receive_queue_ = std::move(*receive_queue);
  auto send_buffers = DatagramBuffers::create(domain_, options.queue_pairs * send_depth_, bytes);
  if (!send_buffers) return tl::make_unexpected(send_buffers.error());
  send_buffers_ = std::move(*send_buffers);
  auto receive_buffers = DatagramBuffers::create(domain_, options.queue_pairs * receive_depth_, bytes);
  if (!receive_buffers) return tl::make_unexpected(receive_buffers.error());
  receive_buffers_ = std::move(*receive_buffers);
  arrivals_.reserve(kBatch);
  return {};
}

Status UdEndpoint::make_queue_pairs(const UdEndpointOptions& options) {
  qkey_ = random_qkey();
  const UdOptions ud{.port = port_.port,
                     .qkey = qkey_,
                     .max_send = send_depth_,
                     .max_receive = receive_depth_,
                     .max_inline = kInlineBytes};
  for (std::size_t i = 0; i < options.queue_pairs; ++i) {
    auto queue_pair = QueuePair::create_ud(domain_, send_queue_, receive_queue_, ud);
    if (!queue_pair) return tl::make_unexpected(queue_pair.error());
    auto sender = directory_.make_sender();
    if (!sender) return tl::make_unexpected(sender.error());
    senders_.push_back(std::move(*sender));
    send_queues_.push_back({0, 0, std::vector<SendSlot>(send_depth_)});
    queue_pairs_.push_back(std::move(*queue_pair));
    for (std::size_t slot = i * receive_depth_; slot < (i + 1) * receive_depth_; ++slot) {
      if (Status status = queue_pairs_[i].post_receive(receive_buffers_, slot, work_id(i, slot)); !status) {
        return status;
      }
    }
  }
  return {};
}

std::uint32_t UdEndpoint::mtu_now() const {
  const auto port = context_.query_port(port_.port);
  return std::min(port ? port->active_mtu : port_.active_mtu, payload_bytes_);
}

std::vector<std::uint32_t> UdEndpoint::qpns() const {
  std::vector<std::uint32_t> numbers;
  for (const QueuePair& queue_pair : queue_pairs_) numbers.push_back(queue_pair.number());
  return numbers;
}

std::vector<GidEntry> UdEndpoint::gid_entries(const Gid& first) const {
  const auto table = read_gid_table(context_.get());
  std::vector<GidEntry> entries;
  if (!table) return entries;
  for (const GidEntry& entry : *table) {
    const bool fits = entry.port == port_.port && entry.type != GidType::kRoceV1;
    const bool known =
        std::any_of(entries.begin(), entries.end(), [&](const GidEntry& other) { return other.gid == entry.gid; });
    if (fits && !known) entries.push_back(entry);
  }
  std::stable_sort(entries.begin(), entries.end(), [&](const GidEntry& a, const GidEntry& b) {
    return preference(a.gid, first) < preference(b.gid, first);
  });
  return entries;
}

std::vector<Gid> UdEndpoint::gids(const Gid& first) const {
  std::vector<Gid> gids;
  for (const GidEntry& entry : gid_entries(first)) gids.push_back(entry.gid);
  return gids;
}

std::size_t UdEndpoint::send_buffer(std::size_t queue_pair) const noexcept {
  return queue_pair * send_depth_ + static_cast<std::size_t>(send_queues_[queue_pair].posted % send_depth_);
}

std::span<std::byte> UdEndpoint::payload(std::size_t queue_pair) noexcept {
  return send_buffers_.payload(send_buffer(queue_pair));
}

bool UdEndpoint::can_send(std::size_t queue_pair) const noexcept {
  const SendQueue& queue = send_queues_[queue_pair];
  return queue.posted - queue.completed < send_depth_;
}

Status UdEndpoint::send(std::size_t queue_pair, const UdPeer& peer, std::size_t bytes) {
  const bool signal = (send_queues_[queue_pair].posted + 1) % kSignalEach == 0;
  Status status = post(queue_pair, peer, bytes, {senders_[queue_pair].position(), nullptr}, signal);
  if (!status) senders_[queue_pair].retract(1);
  return status;
}

Status UdEndpoint::send_and_destroy(std::size_t queue_pair, const UdPeer& peer, std::size_t bytes) {
  Status status = post(queue_pair, peer, bytes, {0, peer.address}, true);
  if (!status) ibv_destroy_ah(peer.address);
  return status;
}

Status UdEndpoint::post(std::size_t queue_pair, const UdPeer& peer, std::size_t bytes, const SendSlot& slot,
                        bool signal) {
  SendQueue& queue = send_queues_[queue_pair];
  QueuePair& qp = queue_pairs_[queue_pair];
  unsigned flags = signal ? static_cast<unsigned>(IBV_SEND_SIGNALED) : 0U;
  if (bytes <= qp.max_inline()) flags |= static_cast<unsigned>(IBV_SEND_INLINE);
  const ibv_sge payload = send_buffers_.send_sge(send_buffer(queue_pair), bytes);
  Status status = qp.post_send(peer, payload, work_id(queue_pair, queue.posted + 1), flags);
  if (!status) return status;
  queue.slots[static_cast<std::size_t>(queue.posted % send_depth_)] = slot;
  ++queue.posted;
  return status;
}

// Position n stands in slot n - 1.
void UdEndpoint::complete(std::size_t queue_pair, std::uint64_t position) {
  SendQueue& queue = send_queues_[queue_pair];
  std::uint64_t last_of_sender = 0;
  for (; queue.completed < position; ++queue.completed) {
    SendSlot& slot = queue.slots[static_cast<std::size_t>(queue.completed % send_depth_)];
    if (slot.sender_position != 0) last_of_sender = slot.sender_position;
    if (slot.own_address != nullptr) ibv_destroy_ah(slot.own_address);
    slot = {};
  }
  if (last_of_sender != 0) senders_[queue_pair].completed_through(last_of_sender);
}

Status UdEndpoint::poll_sends() {
  std::array<ibv_wc, kBatch> completions{};
  for (;;) {
    const auto count = send_queue_.poll(completions);
    if (!count) return tl::make_unexpected(count.error());
    for (const ibv_wc& completion : std::span(completions).first(*count)) {
      if (completion.status != IBV_WC_SUCCESS) ++failed_sends_;
      complete(queue_pair_of(completion.wr_id), completion.wr_id & kPositionMask);
    }
    if (*count < kBatch) return {};
  }
}

Result<std::span<const Arrival>> UdEndpoint::sort(std::span<const ibv_wc> completions) {
  arrivals_.clear();
  for (const ibv_wc& completion : completions) {
    if (completion.status != IBV_WC_SUCCESS) {
      return failure(ErrorCode::kUnavailable,
                     fmt::format("a receive failed on {}: {}", device(), ibv_wc_status_str(completion.status)));
    }
    arrivals_.push_back(
        {queue_pair_of(completion.wr_id), static_cast<std::size_t>(completion.wr_id & kPositionMask), completion});
  }
  return std::span<const Arrival>(arrivals_);
}

Result<std::span<const Arrival>> UdEndpoint::poll_receives() {
  std::array<ibv_wc, kBatch> completions;
  const auto count = receive_queue_.poll(completions);
  if (!count) return tl::make_unexpected(count.error());
  return sort(std::span(completions).first(*count));
}

Result<std::span<const Arrival>> UdEndpoint::wait_receives(Deadline deadline) {
  std::array<ibv_wc, kBatch> completions;
  const auto count = receive_queue_.wait(completions, deadline);
  if (!count) return tl::make_unexpected(count.error());
  return sort(std::span(completions).first(*count));
}

Status UdEndpoint::repost(const Arrival& arrival) {
  return queue_pairs_[arrival.queue_pair].post_receive(receive_buffers_, arrival.slot,
                                                       work_id(arrival.queue_pair, arrival.slot));
}

std::span<const std::byte> UdEndpoint::received(const Arrival& arrival) const noexcept {
  return receive_buffers_.received(arrival.slot, arrival.completion.byte_len);
}

std::span<const std::byte, DatagramBuffers::kGrhBytes> UdEndpoint::grh(const Arrival& arrival) const noexcept {
  return receive_buffers_.grh(arrival.slot);
}

Status UdEndpoint::take_event() {
  const auto taken = receive_queue_.take_event();
  if (!taken) return tl::make_unexpected(taken.error());
  return {};
}

}  // namespace verbena::cli
