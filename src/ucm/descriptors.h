// Which descriptors of the process are channels of rdma_cm. Every write() of the process asks, so that the answer must
// cost next to nothing where it is no.
//
// Thread-safety: any thread, also in a signal handler.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace verbena::ucm {

inline constexpr std::size_t kMostDescriptors = 65536;

// For each descriptor the inode of the channel that it was last opened as; 0: of none. It may have been closed since,
// and be something else now: channel_inode() makes sure. Relaxed: who has a descriptor got it after this was written.
extern constinit std::array<std::atomic<std::uint64_t>, kMostDescriptors> descriptor_inodes;

inline bool may_be_channel(int fd) noexcept {
  return static_cast<unsigned>(fd) < kMostDescriptors &&
         descriptor_inodes[static_cast<unsigned>(fd)].load(std::memory_order_relaxed) != 0;
}

// False where the number is beyond the table.
bool remember_channel(int fd) noexcept;

// What names the channel; 0 where the descriptor is none any more. Requires: may_be_channel(fd).
std::uint64_t channel_inode(int fd) noexcept;

}  // namespace verbena::ucm
