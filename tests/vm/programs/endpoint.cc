#include "endpoint.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace verbena::vm {
namespace {

using namespace std::chrono_literals;

// Puts the value into its place; the error goes to the caller.
template <class T>
Status take(Result<T> made, T& place) {
  if (!made) return tl::make_unexpected(made.error());
  place = std::move(*made);
  return {};
}

}  // namespace

Result<Endpoint> Endpoint::open(const std::string& device) {
  Endpoint end;
  if (Status status = take(Context::open(device), end.context_); !status) return tl::make_unexpected(status.error());
  if (Status status = take(ProtectionDomain::create(end.context_), end.domain_); !status)
    return tl::make_unexpected(status.error());
  if (Status status = take(AhDirectory::create(end.domain_, 1), end.directory_); !status)
    return tl::make_unexpected(status.error());
  if (Status status = end.make_queues(); !status) return tl::make_unexpected(status.error());
  return end;
}

Status Endpoint::make_queues() {
  if (Status status = take(CompletionChannel::create(context_), sent_channel_); !status) return status;
  if (Status status = take(CompletionChannel::create(context_), received_channel_); !status) return status;
  if (Status status = take(CompletionQueue::create(context_, 64, sent_channel_), sent_); !status) return status;
  if (Status status = take(CompletionQueue::create(context_, 128, received_channel_), received_); !status)
    return status;
  if (Status status = take(DatagramBuffers::create(domain_, kReceives + 1, kPayload), buffers_); !status) return status;
  UdOptions options;
  options.qkey = kQkey;
  if (Status status = take(QueuePair::create_ud(domain_, sent_, received_, options), pair_); !status) return status;
  for (std::size_t slot = 0; slot < kReceives; ++slot) {
    if (Status status = pair_.post_receive(buffers_, slot, slot); !status) return status;
  }
  return take(directory_.make_sender(), sender_);
}

Result<AhHandle> Endpoint::acquire(const Destination& destination, std::chrono::milliseconds patience) {
  Result<AhHandle> handle = directory_.acquire(destination, Deadline::in(patience));
  if (handle) handles_[to_string(destination.gid)] = *handle;
  return handle;
}

bool Endpoint::drop(const Destination& destination) {
  return handles_.erase(to_string(destination.gid)) != 0;
}

Status Endpoint::send(const Destination& destination, std::uint32_t qpn, std::string_view text) {
  ibv_ah* address = sender_.next(destination);
  if (address == nullptr) return failure(ErrorCode::kUnavailable, "no address is ready for it");
  const std::size_t bytes = std::min(text.size(), kPayload);
  std::memcpy(buffers_.payload(kReceives).data(), text.data(), bytes);
  const ibv_sge payload = buffers_.send_sge(kReceives, bytes);
  if (Status posted = pair_.post_send({address, qpn, kQkey}, payload, sender_.position(), IBV_SEND_SIGNALED); !posted) {
    sender_.retract(1);
    return posted;
  }
  std::array<ibv_wc, 1> completion{};
  const Result<std::size_t> got = sent_.wait(completion, Deadline::in(5s));
  if (!got) return tl::make_unexpected(got.error());
  if (*got == 0) return failure(ErrorCode::kTimedOut, "the send did not complete within five seconds");
  sender_.completed_through(completion[0].wr_id);
  if (completion[0].status == IBV_WC_SUCCESS) return {};
  return failure(ErrorCode::kUnavailable, std::string("the send ended: ") + ibv_wc_status_str(completion[0].status));
}

Result<Received> Endpoint::receive(std::chrono::milliseconds patience) {
  std::array<ibv_wc, 1> completion{};
  const Result<std::size_t> got = received_.wait(completion, Deadline::in(patience));
  if (!got) return tl::make_unexpected(got.error());
  if (*got == 0) return failure(ErrorCode::kTimedOut, "nothing came");
  const auto slot = static_cast<std::size_t>(completion[0].wr_id);
  const auto payload = buffers_.received(slot, completion[0].byte_len);
  Received datagram;
  datagram.text.resize(payload.size());
  std::memcpy(datagram.text.data(), payload.data(), payload.size());
  datagram.qpn = completion[0].src_qp;
  const Result<Destination> reply = directory_.reply_to(completion[0], buffers_.grh(slot));
  if (Status posted = pair_.post_receive(buffers_, slot, slot); !posted) return tl::make_unexpected(posted.error());
  if (!reply) return tl::make_unexpected(reply.error());
  datagram.reply = *reply;
  return datagram;
}

Result<AhLeftover> Endpoint::close(std::chrono::milliseconds patience) {
  handles_.clear();
  AhLeftover left = directory_.close(Deadline::in(patience));
  sender_ = {};
  directory_ = {};
  if (Status status = pair_.close(); !status) return tl::make_unexpected(status.error());
  buffers_ = {};
  for (CompletionQueue* queue : {&sent_, &received_}) {
    if (Status status = queue->close(); !status) return tl::make_unexpected(status.error());
  }
  for (CompletionChannel* channel : {&sent_channel_, &received_channel_}) {
    if (Status status = channel->close(); !status) return tl::make_unexpected(status.error());
  }
  if (Status status = domain_.close(); !status) return tl::make_unexpected(status.error());
  if (Status status = context_.close(); !status) return tl::make_unexpected(status.error());
  return left;
}

}  // namespace verbena::vm
