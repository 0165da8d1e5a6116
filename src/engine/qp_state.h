// The life of a queue pair: which state may follow which, and which attributes each step needs or allows.
//
//            ┌────────────────────── any ──────────────────────┐
//            v                                                 │
//   RESET ─> INIT ─> RTR ─> RTS <─> SQD                        │
//              ^│            ^ │                               │
//              └┘            │ v (send error, UD, UC, RAW)     │
//   any but RESET ─> ERR    SQE                          RESET <┘
//
// InfiniBand Architecture volume 1, section 11.2.5.2 and tables 91 to 96; the attributes per edge and type as the Linux
// kernel checks them. The numbers are those of verbs.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace verbena::engine {

enum class QpState : std::uint8_t {
  kReset = 0,
  kInit = 1,
  kReadyToReceive = 2,
  kReadyToSend = 3,
  kSendQueueDrained = 4,
  kSendQueueError = 5,
  kError = 6,
};
inline constexpr std::size_t kQpStates = 7;

enum class QpType : std::uint8_t { kRc = 2, kUc = 3, kUd = 4, kRawPacket = 8, kXrcSend = 9, kXrcReceive = 10 };
inline constexpr std::array<QpType, 6> kQpTypes{QpType::kRc,        QpType::kUc,      QpType::kUd,
                                                QpType::kRawPacket, QpType::kXrcSend, QpType::kXrcReceive};

// Whether what arrives for the queue pair is looked at.
constexpr bool receives(QpState state) noexcept {
  return state >= QpState::kReadyToReceive && state != QpState::kError;
}

std::string_view name_of(QpState state) noexcept;
std::string_view name_of(QpType type) noexcept;

// Bits of enum ibv_qp_attr_mask.
using AttrMask = std::uint32_t;
inline constexpr AttrMask kAttrState = 1U << 0;
inline constexpr AttrMask kAttrCurrentState = 1U << 1;
inline constexpr AttrMask kAttrSqdAsyncNotify = 1U << 2;
inline constexpr AttrMask kAttrAccessFlags = 1U << 3;
inline constexpr AttrMask kAttrPkeyIndex = 1U << 4;
inline constexpr AttrMask kAttrPort = 1U << 5;
inline constexpr AttrMask kAttrQkey = 1U << 6;
inline constexpr AttrMask kAttrAddressVector = 1U << 7;
inline constexpr AttrMask kAttrPathMtu = 1U << 8;
inline constexpr AttrMask kAttrTimeout = 1U << 9;
inline constexpr AttrMask kAttrRetryCount = 1U << 10;
inline constexpr AttrMask kAttrRnrRetry = 1U << 11;
inline constexpr AttrMask kAttrReceivePsn = 1U << 12;
inline constexpr AttrMask kAttrMaxRdAtomic = 1U << 13;
inline constexpr AttrMask kAttrAlternatePath = 1U << 14;
inline constexpr AttrMask kAttrMinRnrTimer = 1U << 15;
inline constexpr AttrMask kAttrSendPsn = 1U << 16;
inline constexpr AttrMask kAttrMaxDestRdAtomic = 1U << 17;
inline constexpr AttrMask kAttrPathMigrationState = 1U << 18;
inline constexpr AttrMask kAttrCapabilities = 1U << 19;
inline constexpr AttrMask kAttrDestinationQpn = 1U << 20;
inline constexpr AttrMask kAttrRateLimit = 1U << 25;

struct QpEdge {
  bool valid = false;
  AttrMask required = 0;
  AttrMask optional = 0;
};

// The edge of the table; not valid where there is none.
const QpEdge& edge_of(QpType type, QpState from, QpState to) noexcept;

// 0, or EINVAL: no such edge, an attribute missing, or one too many. kAttrState is always allowed.
int check_transition(QpType type, QpState from, QpState to, AttrMask mask) noexcept;

}  // namespace verbena::engine
