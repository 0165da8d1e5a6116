// What a work request ended as. The numbers are those of verbs.h; the first 46 bytes lie as in ibv_wc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/place.h"

namespace verbena::engine {

enum class WcStatus : std::uint32_t {
  kSuccess = 0,
  kLocalLengthError = 1,
  kLocalQpOperationError = 2,
  kLocalEecOperationError = 3,
  kLocalProtectionError = 4,
  kFlushError = 5,
  kMemoryWindowBindError = 6,
  kBadResponseError = 7,
  kLocalAccessError = 8,
  kRemoteInvalidRequestError = 9,
  kRemoteAccessError = 10,
  kRemoteOperationError = 11,
  kRetryExceededError = 12,
  kRnrRetryExceededError = 13,
  kFatalError = 19,
  kGeneralError = 21,
};

enum class WcOpcode : std::uint32_t {
  kSend = 0,
  kRdmaWrite = 1,
  kRdmaRead = 2,
  kCompareSwap = 3,
  kFetchAdd = 4,
  kBindMemoryWindow = 5,
  kLocalInvalidate = 6,
  kFlush = 8,
  kAtomicWrite = 9,
  kReceive = 128,
  kReceiveRdmaWithImmediate = 129,
};

// What `service_level` says of a datagram received over RoCEv2.
inline constexpr std::uint8_t kHeaderIsIpv6 = 1;
inline constexpr std::uint8_t kHeaderIsIpv4 = 2;

inline constexpr std::uint32_t kWcGrh = 1;
inline constexpr std::uint32_t kWcWithImmediate = 2;
inline constexpr std::uint32_t kWcWithInvalidate = 8;

// In an error completion only wr_id, status, vendor_error and qp_number mean anything.
struct Completion {
  std::uint64_t wr_id = 0;
  WcStatus status = WcStatus::kSuccess;
  WcOpcode opcode = WcOpcode::kSend;
  std::uint32_t vendor_error = 0;  // a MemoryFault, where memory was at fault
  std::uint32_t byte_length = 0;
  std::uint32_t immediate = 0;  // in network order, as it came; or the invalidated key
  std::uint32_t qp_number = 0;
  std::uint32_t source_qp = 0;
  std::uint32_t flags = 0;
  std::uint16_t pkey_index = 0;
  std::uint16_t source_lid = 0;
  std::uint8_t service_level = 0;
  std::uint8_t dlid_path_bits = 0;
  bool solicited = false;     // wakes a queue that is armed for solicited completions only
  std::uint8_t reserved = 0;  // fills the last word, so that copies are whole words
};
static_assert(sizeof(Completion) == 48 && std::is_trivially_copyable_v<Completion>);
static_assert(offsetof(Completion, solicited) == 46);

// Where a queue pair's completions go.
//
// Thread-safety: the implementation locks; several queue pairs share one.
class CompletionSink {
 public:
  // `place` is given back when the completion is polled. False where the completion was lost because the queue is full.
  virtual bool push(const Completion& completion, Place place) noexcept = 0;
  // Whether it was overrun: then it takes no completion ever again.
  virtual bool overrun() const noexcept { return false; }

 protected:
  ~CompletionSink() = default;
};

}  // namespace verbena::engine
