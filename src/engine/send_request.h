// A send work request as the user posts it (ibv_send_wr). The numbers are those of verbs.h.
#pragma once

#include <cstdint>
#include <span>

#include "base/strong.h"
#include "engine/memory_region.h"
#include "engine/memory_window.h"
#include "engine/sge.h"

namespace verbena::engine {

struct AddressHandle;

enum class SendOpcode : std::uint8_t {
  kRdmaWrite = 0,
  kRdmaWriteWithImmediate = 1,
  kSend = 2,
  kSendWithImmediate = 3,
  kRdmaRead = 4,
  kCompareSwap = 5,
  kFetchAdd = 6,
  kLocalInvalidate = 7,
  kBindMemoryWindow = 8,
  kSendWithInvalidate = 9,
  kSegmentedSend = 10,
  kFlush = 14,
  kAtomicWrite = 15,
};

// Whether verbs defines the number.
constexpr bool is_known(SendOpcode opcode) noexcept {
  return opcode <= SendOpcode::kSegmentedSend || opcode == SendOpcode::kFlush || opcode == SendOpcode::kAtomicWrite;
}

inline constexpr std::uint32_t kSendFence = 1;
inline constexpr std::uint32_t kSendSignaled = 2;
inline constexpr std::uint32_t kSendSolicited = 4;
inline constexpr std::uint32_t kSendInline = 8;
// Not IBV_SEND_IP_CSUM (16): no checksum is offered, as ibv_query_device_ex() says.
inline constexpr std::uint32_t kOfferedSendFlags = kSendFence | kSendSignaled | kSendSolicited | kSendInline;

struct SendRequest {
  std::uint64_t wr_id = 0;
  SendOpcode opcode = SendOpcode::kSend;  // any number may stand here; an unknown one is refused
  std::uint32_t flags = 0;
  std::uint32_t immediate = 0;  // in network order, as it stands in the work request; or the key to invalidate
  std::span<const Sge> sges;
  // For UD, and only where the opcode is a send: in any other, verbs keeps other things in their place.
  const AddressHandle* address = nullptr;
  std::uint32_t remote_qpn = 0;
  std::uint32_t remote_qkey = 0;
  // For RDMA and atomics.
  std::uint64_t remote_address = 0;
  MemoryKey rkey;
  std::uint64_t compare_add = 0;
  std::uint64_t swap = 0;
  // For binding a memory window, of which compare_add is the length, remote_address the first byte and rkey the new
  // key.
  MemoryKey window;
  MemoryKey region;
  AccessFlags access = 0;
  WindowType window_type = WindowType::kType2;
  // For XRC: the shared receive queue at the other end.
  std::uint32_t shared_queue = 0;
};

}  // namespace verbena::engine
