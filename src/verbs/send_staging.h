// Sends that a program builds by the ibv_wr_* calls, from ibv_wr_start() until it completes or aborts them.
//
// Each is kept with its SGEs, or with a copy of its inline data, because both may be gone by the time the list is
// posted. The memory is kept from one list to the next, so that a program in its stride allocates nothing.
//
// Thread-safety: start() takes the lock that complete and abort give back; the rest needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "device/queue_pair.h"

namespace verbena::verbs {

class SendStaging {
 public:
  void start() noexcept;
  void abort() noexcept;
  // Posts all, or none where building them failed, one of them is refused or there is no room for all. 0 or the errno
  // of the first failure.
  int complete(device::QueuePair& queue_pair) noexcept;

  // A new send, to which the setters below belong.
  void add(std::uint64_t wr_id, std::uint32_t flags, engine::SendOpcode opcode, std::uint32_t immediate) noexcept;
  void set_destination(const engine::AddressHandle* address, std::uint32_t qpn, std::uint32_t qkey) noexcept;
  // Where an RDMA or atomic begun by add() goes.
  void set_target(std::uint32_t rkey, std::uint64_t address, std::uint64_t compare_add = 0,
                  std::uint64_t swap = 0) noexcept;
  // The send that add() began, for what no setter sets; nullptr where the list cannot be posted.
  engine::SendRequest* current() noexcept { return staged_.empty() ? nullptr : &staged_.back().request; }
  void set_shared_queue(std::uint32_t number) noexcept;
  void set_sges(std::span<const engine::Sge> sges) noexcept;
  // One buffer after the other is one message.
  void append_inline(const void* data, std::size_t size) noexcept;
  // The list cannot be posted.
  void refuse(int error) noexcept {
    if (error_ == 0) error_ = error;
  }

 private:
  struct Staged {
    engine::SendRequest request;
    std::size_t first = 0;  // in sges_, or in bytes_ where the send is inline
    std::size_t count = 0;
  };

  std::span<const engine::Sge> list_of(const Staged& staged, engine::Sge& inline_sge) const noexcept;
  int check_all(device::QueuePair::SendBatch& batch) noexcept;
  void clear() noexcept;

  std::mutex mutex_;
  std::vector<Staged> staged_;
  std::vector<engine::Sge> sges_;
  std::vector<std::byte> bytes_;
  int error_ = 0;
};

}  // namespace verbena::verbs
