#include "lane.h"

#include <array>
#include <cstring>
#include <string>
#include <utility>

namespace verbena::on_device {
namespace {

constexpr std::size_t kBatch = 32;

// Puts the value into its place; the error goes to the caller.
template <class T>
Status take_into(Result<T> made, T& place) {
  if (!made) return tl::make_unexpected(made.error());
  place = std::move(*made);
  return {};
}

}  // namespace

Result<std::unique_ptr<Lane>> Lane::open(const Context& context, const ProtectionDomain& domain, AhDirectory& directory,
                                         const LaneOptions& options) {
  std::unique_ptr<Lane> lane(new Lane(options));
  if (Status made = lane->make(context, domain, directory); !made) return tl::make_unexpected(made.error());
  return lane;
}

Status Lane::make(const Context& context, const ProtectionDomain& domain, AhDirectory& directory) {
  const auto send_depth = static_cast<int>(options_.send_depth);
  const auto receive_depth = static_cast<int>(options_.receive_depth);
  addresses_.resize(options_.send_depth);
  if (Status made = take_into(CompletionQueue::create(context, send_depth), sent_); !made) return made;
  if (Status made = take_into(CompletionQueue::create(context, receive_depth), received_); !made) return made;
  for (auto [buffers, slots] :
       {std::pair(&outgoing_, options_.send_depth), std::pair(&incoming_, options_.receive_depth)}) {
    if (Status made = take_into(DatagramBuffers::create(domain, slots, options_.payload_bytes), *buffers); !made)
      return made;
  }
  UdOptions ud;
  ud.port = options_.port;
  ud.qkey = kQkey;
  ud.max_send = options_.send_depth;
  ud.max_receive = options_.receive_depth;
  if (Status made = take_into(QueuePair::create_ud(domain, sent_, received_, ud), pair_); !made) return made;
  for (std::size_t slot = 0; slot < options_.receive_depth; ++slot) {
    if (Status posted = pair_.post_receive(incoming_, slot, slot); !posted) return posted;
  }
  return take_into(directory.make_sender(), sender_);
}

Lane::~Lane() {
  pair_ = {};
  sender_.drained();
}

Status Lane::send(ibv_ah* address, std::uint32_t qpn, std::span<const std::byte> payload) {
  const std::uint64_t position = sender_.position();
  const std::size_t slot = position % options_.send_depth;
  std::memcpy(outgoing_.payload(slot).data(), payload.data(), payload.size());
  addresses_[slot] = address;
  if (options_.posted) options_.posted(address);
  Status posted = pair_.post_send({.address = address, .qpn = qpn, .qkey = kQkey},
                                  outgoing_.send_sge(slot, payload.size()), position, IBV_SEND_SIGNALED);
  if (posted) return posted;
  if (options_.completed) options_.completed(address);
  sender_.retract(1);
  return posted;
}

Status Lane::poll_sends() {
  std::array<ibv_wc, kBatch> completions{};
  const Result<std::size_t> got = sent_.poll(completions);
  if (!got) return tl::make_unexpected(got.error());
  for (const ibv_wc& completion : std::span(completions).first(*got)) {
    if (completion.status != IBV_WC_SUCCESS) ++failed_;
    if (options_.completed) options_.completed(addresses_[completion.wr_id % options_.send_depth]);
    sender_.completed_through(completion.wr_id);
  }
  return {};
}

Status Lane::settle(Deadline deadline) {
  while (sender_.outstanding() != 0) {
    if (Status polled = poll_sends(); !polled) return polled;
    if (!deadline.passed()) continue;
    return failure(ErrorCode::kTimedOut, std::to_string(sender_.outstanding()) + " sends have not completed");
  }
  return {};
}

Status Lane::receive(const Taker& take) {
  std::array<ibv_wc, kBatch> completions{};
  const Result<std::size_t> got = received_.poll(completions);
  if (!got) return tl::make_unexpected(got.error());
  for (const ibv_wc& completion : std::span(completions).first(*got)) {
    const auto slot = static_cast<std::size_t>(completion.wr_id);
    if (completion.status != IBV_WC_SUCCESS) {
      return failure(ErrorCode::kUnavailable, std::string("a receive ended: ") + ibv_wc_status_str(completion.status));
    }
    take(incoming_.received(slot, completion.byte_len), incoming_.grh(slot), completion);
    if (Status posted = pair_.post_receive(incoming_, slot, slot); !posted) return posted;
  }
  return {};
}

}  // namespace verbena::on_device
