// How much of everything a device offers: the defaults are those of kernel rxe, each may be set lower (or higher) by
// the owner of the device, so that running into a limit can be rehearsed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace verbena::engine {

// The longest SGE list of any queue, and so the size of the arrays that hold resolved ones.
inline constexpr std::size_t kMaxSge = 32;
inline constexpr std::uint32_t kMaxInline = 512;
inline constexpr std::uint32_t kMaxMessage = 1U << 31;

struct Limits {
  std::uint32_t max_qp = (1U << 20) - 16;
  std::uint32_t max_qp_wr = 1U << 20;
  std::uint32_t max_sge = kMaxSge;
  std::uint32_t max_inline = kMaxInline;
  std::uint32_t max_cq = 1U << 20;
  std::uint32_t max_cqe = 32767;
  std::uint32_t max_mr = 1U << 19;
  std::uint32_t max_mw = 1U << 19;
  std::uint32_t max_pd = 1U << 20;
  std::uint32_t max_ah = 32767;
  std::uint32_t max_xrcd = 1U << 20;
  std::uint32_t max_srq = 1U << 20;
  std::uint32_t max_srq_wr = 1U << 20;
  std::uint32_t max_srq_sge = 27;
  std::uint32_t max_rd_atomic = 128;
  std::uint32_t max_multicast_groups = 8192;
  std::uint32_t max_queue_pairs_per_group = 56;
  std::uint32_t max_multicast_attachments = 0x70000;
  std::uint32_t gid_table_length = 1024;
  std::uint32_t max_flow = 4096;  // one after the other is asked for each frame
  std::uint32_t max_dm = 1U << 16;
  std::uint64_t max_dm_size = 16U << 20;  // all of it together
  std::uint64_t max_mr_size = UINT64_MAX;
  std::uint32_t max_message = kMaxMessage;
  std::uint8_t local_ca_ack_delay = 15;
};

inline constexpr std::uint16_t kPkeyTableLength = 1;
inline constexpr std::uint16_t kDefaultPkey = 0xffff;

}  // namespace verbena::engine
