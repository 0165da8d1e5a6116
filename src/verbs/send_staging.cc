#include "verbs/send_staging.h"

#include <cerrno>

namespace verbena::verbs {

void SendStaging::start() noexcept {
  mutex_.lock();
  clear();
}

void SendStaging::abort() noexcept {
  clear();
  mutex_.unlock();
}

void SendStaging::clear() noexcept {
  staged_.clear();
  sges_.clear();
  bytes_.clear();
  error_ = 0;
}

void SendStaging::add(std::uint64_t wr_id, std::uint32_t flags, engine::SendOpcode opcode,
                      std::uint32_t immediate) noexcept {
  try {
    Staged& staged = staged_.emplace_back();
    staged.request.wr_id = wr_id;
    staged.request.flags = flags & ~engine::kSendInline;  // said by the setter that follows
    staged.request.opcode = opcode;
    staged.request.immediate = immediate;
  } catch (...) {
    refuse(ENOMEM);
  }
}

void SendStaging::set_destination(const engine::AddressHandle* address, std::uint32_t qpn,
                                  std::uint32_t qkey) noexcept {
  if (staged_.empty()) return refuse(EINVAL);
  engine::SendRequest& request = staged_.back().request;
  request.address = address;
  request.remote_qpn = qpn;
  request.remote_qkey = qkey;
}

void SendStaging::set_target(std::uint32_t rkey, std::uint64_t address, std::uint64_t compare_add,
                             std::uint64_t swap) noexcept {
  if (staged_.empty()) return refuse(EINVAL);
  engine::SendRequest& request = staged_.back().request;
  request.rkey = MemoryKey(rkey);
  request.remote_address = address;
  request.compare_add = compare_add;
  request.swap = swap;
}

void SendStaging::set_shared_queue(std::uint32_t number) noexcept {
  if (staged_.empty()) return refuse(EINVAL);
  staged_.back().request.shared_queue = number;
}

void SendStaging::set_sges(std::span<const engine::Sge> sges) noexcept {
  if (staged_.empty()) return refuse(EINVAL);
  Staged& staged = staged_.back();
  try {
    staged.first = sges_.size();
    staged.count = sges.size();
    staged.request.flags &= ~engine::kSendInline;
    sges_.insert(sges_.end(), sges.begin(), sges.end());
  } catch (...) {
    staged.count = 0;
    refuse(ENOMEM);
  }
}

void SendStaging::append_inline(const void* data, std::size_t size) noexcept {
  if (staged_.empty()) return refuse(EINVAL);
  Staged& staged = staged_.back();
  try {
    const auto* const bytes = static_cast<const std::byte*>(data);
    if ((staged.request.flags & engine::kSendInline) == 0) staged.first = bytes_.size();
    bytes_.insert(bytes_.end(), bytes, bytes + size);
    staged.count = bytes_.size() - staged.first;
    staged.request.flags |= engine::kSendInline;
  } catch (...) {
    refuse(ENOMEM);
  }
}

std::span<const engine::Sge> SendStaging::list_of(const Staged& staged, engine::Sge& inline_sge) const noexcept {
  if ((staged.request.flags & engine::kSendInline) == 0) return std::span(sges_).subspan(staged.first, staged.count);
  inline_sge.address = reinterpret_cast<std::uint64_t>(bytes_.data() + staged.first);
  inline_sge.length = static_cast<std::uint32_t>(staged.count);
  return {&inline_sge, 1};
}

int SendStaging::complete(device::QueuePair& queue_pair) noexcept {
  int error = error_;
  if (error == 0 && !queue_pair.context().alive()) error = device::Context::refuse_child();
  if (error == 0 && !staged_.empty()) {
    device::QueuePair::SendBatch batch(queue_pair);
    error = check_all(batch);
    for (Staged& staged : staged_) {
      if (error != 0) break;
      engine::Sge inline_sge;
      staged.request.sges = list_of(staged, inline_sge);
      error = batch.post(staged.request);
    }
  }
  abort();
  return error;
}

int SendStaging::check_all(device::QueuePair::SendBatch& batch) noexcept {
  for (Staged& staged : staged_) {
    engine::Sge inline_sge;
    staged.request.sges = list_of(staged, inline_sge);
    if (const int error = batch.check(staged.request); error != 0) return error;
  }
  return staged_.size() <= batch.room() ? 0 : ENOMEM;
}

}  // namespace verbena::verbs
