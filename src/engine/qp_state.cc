#include "engine/qp_state.h"

#include <cerrno>
#include <initializer_list>

namespace verbena::engine {
namespace {

constexpr auto kReset = QpState::kReset;
constexpr auto kInit = QpState::kInit;
constexpr auto kRtr = QpState::kReadyToReceive;
constexpr auto kRts = QpState::kReadyToSend;
constexpr auto kSqd = QpState::kSendQueueDrained;
constexpr auto kSqe = QpState::kSendQueueError;
constexpr auto kErr = QpState::kError;

// Shorter names for the rows below.
constexpr AttrMask kNone = 0;
constexpr AttrMask kCur = kAttrCurrentState;
constexpr AttrMask kPkeyPort = kAttrPkeyIndex | kAttrPort;
constexpr AttrMask kPath = kAttrAddressVector | kAttrPathMtu | kAttrDestinationQpn | kAttrReceivePsn;
constexpr AttrMask kResponder = kAttrMaxDestRdAtomic | kAttrMinRnrTimer;
constexpr AttrMask kRetry = kAttrTimeout | kAttrRetryCount | kAttrRnrRetry;
constexpr AttrMask kConnectedOptional = kAttrAlternatePath | kAttrAccessFlags | kAttrPathMigrationState;

struct Row {
  QpState from;
  QpState to;
  AttrMask required;
  AttrMask optional;
};

// Edges that every type has, without attributes.
constexpr std::initializer_list<Row> kCommonRows{
    {kReset, kReset, kNone, kNone}, {kInit, kReset, kNone, kNone},
    {kRtr, kReset, kNone, kNone},   {kRts, kReset, kNone, kNone},
    {kSqd, kReset, kNone, kNone},   {kSqe, kReset, kNone, kNone},
    {kErr, kReset, kNone, kNone},   {kInit, kErr, kNone, kNone},
    {kRtr, kErr, kNone, kNone},     {kRts, kErr, kNone, kNone},
    {kSqd, kErr, kNone, kNone},     {kSqe, kErr, kNone, kNone},
    {kErr, kErr, kNone, kNone},     {kRts, kSqd, kNone, kAttrSqdAsyncNotify},
};

constexpr std::initializer_list<Row> kUdRows{
    {kReset, kInit, kPkeyPort | kAttrQkey, kNone},
    {kInit, kInit, kNone, kPkeyPort | kAttrQkey},
    {kInit, kRtr, kNone, kAttrPkeyIndex | kAttrQkey},
    {kRtr, kRts, kAttrSendPsn, kCur | kAttrQkey},
    {kRts, kRts, kNone, kCur | kAttrQkey},
    {kSqd, kRts, kNone, kCur | kAttrQkey},
    {kSqd, kSqd, kNone, kAttrPkeyIndex | kAttrQkey},
    {kSqe, kRts, kNone, kCur | kAttrQkey},
};

constexpr std::initializer_list<Row> kUcRows{
    {kReset, kInit, kPkeyPort | kAttrAccessFlags, kNone},
    {kInit, kInit, kNone, kPkeyPort | kAttrAccessFlags},
    {kInit, kRtr, kPath, kAttrAlternatePath | kAttrAccessFlags | kAttrPkeyIndex},
    {kRtr, kRts, kAttrSendPsn, kCur | kConnectedOptional},
    {kRts, kRts, kNone, kCur | kConnectedOptional},
    {kSqd, kRts, kNone, kCur | kConnectedOptional},
    {kSqd, kSqd, kNone, kAttrAddressVector | kAttrPkeyIndex | kConnectedOptional},
    {kSqe, kRts, kNone, kCur | kAttrAccessFlags},
};

constexpr std::initializer_list<Row> kRcRows{
    {kReset, kInit, kPkeyPort | kAttrAccessFlags, kNone},
    {kInit, kInit, kNone, kPkeyPort | kAttrAccessFlags},
    {kInit, kRtr, kPath | kResponder, kAttrAlternatePath | kAttrAccessFlags | kAttrPkeyIndex},
    {kRtr, kRts, kRetry | kAttrSendPsn | kAttrMaxRdAtomic, kCur | kConnectedOptional | kAttrMinRnrTimer},
    {kRts, kRts, kNone, kCur | kConnectedOptional | kAttrMinRnrTimer},
    {kSqd, kRts, kNone, kCur | kConnectedOptional | kAttrMinRnrTimer},
    {kSqd, kSqd, kNone, kPkeyPort | kAttrAddressVector | kRetry | kAttrMaxRdAtomic | kResponder | kConnectedOptional},
};

// The initiator has no responder and the target no requester, so each lacks the other's attributes.
constexpr std::initializer_list<Row> kXrcSendRows{
    {kReset, kInit, kPkeyPort | kAttrAccessFlags, kNone},
    {kInit, kInit, kNone, kPkeyPort | kAttrAccessFlags},
    {kInit, kRtr, kPath, kAttrAlternatePath | kAttrAccessFlags | kAttrPkeyIndex},
    {kRtr, kRts, kRetry | kAttrSendPsn | kAttrMaxRdAtomic, kCur | kConnectedOptional},
    {kRts, kRts, kNone, kCur | kConnectedOptional},
    {kSqd, kRts, kNone, kCur | kConnectedOptional},
    {kSqd, kSqd, kNone, kPkeyPort | kAttrAddressVector | kRetry | kAttrMaxRdAtomic | kConnectedOptional},
};

constexpr std::initializer_list<Row> kXrcReceiveRows{
    {kReset, kInit, kPkeyPort | kAttrAccessFlags, kNone},
    {kInit, kInit, kNone, kPkeyPort | kAttrAccessFlags},
    {kInit, kRtr, kPath | kResponder, kAttrAlternatePath | kAttrAccessFlags | kAttrPkeyIndex},
    {kRtr, kRts, kAttrTimeout | kAttrSendPsn, kCur | kConnectedOptional | kAttrMinRnrTimer},
    {kRts, kRts, kNone, kCur | kConnectedOptional | kAttrMinRnrTimer},
    {kSqd, kRts, kNone, kCur | kConnectedOptional | kAttrMinRnrTimer},
    {kSqd, kSqd, kNone, kPkeyPort | kAttrAddressVector | kAttrTimeout | kResponder | kConnectedOptional},
};

constexpr std::initializer_list<Row> kRawPacketRows{
    {kReset, kInit, kAttrPort, kNone},   {kInit, kInit, kNone, kAttrPort},    {kInit, kRtr, kNone, kNone},
    {kRtr, kRts, kNone, kAttrRateLimit}, {kRts, kRts, kNone, kAttrRateLimit}, {kSqd, kRts, kNone, kNone},
    {kSqd, kSqd, kNone, kNone},          {kSqe, kRts, kNone, kNone},
};

using Table = std::array<std::array<QpEdge, kQpStates>, kQpStates>;

constexpr void add(Table& table, std::initializer_list<Row> rows) {
  for (const Row& row : rows) {
    table[static_cast<std::size_t>(row.from)][static_cast<std::size_t>(row.to)] = {true, row.required, row.optional};
  }
}

constexpr Table table_of(std::initializer_list<Row> rows) {
  Table table{};
  add(table, kCommonRows);
  add(table, rows);
  return table;
}

constexpr Table kUdTable = table_of(kUdRows);
constexpr Table kUcTable = table_of(kUcRows);
constexpr Table kRcTable = table_of(kRcRows);
constexpr Table kXrcSendTable = table_of(kXrcSendRows);
constexpr Table kXrcReceiveTable = table_of(kXrcReceiveRows);
constexpr Table kRawPacketTable = table_of(kRawPacketRows);

const Table& table_for(QpType type) noexcept {
  switch (type) {
    case QpType::kUd:
      return kUdTable;
    case QpType::kUc:
      return kUcTable;
    case QpType::kRc:
      return kRcTable;
    case QpType::kXrcSend:
      return kXrcSendTable;
    case QpType::kXrcReceive:
      return kXrcReceiveTable;
    case QpType::kRawPacket:
      return kRawPacketTable;
  }
  __builtin_unreachable();
}

bool exists(QpState state) noexcept {
  return static_cast<std::size_t>(state) < kQpStates;
}

// Where the user may say which state he believes the queue pair to be in.
bool may_be_named(QpState state) noexcept {
  return state == kRtr || state == kRts || state == kSqd || state == kSqe;
}

}  // namespace

std::string_view name_of(QpState state) noexcept {
  constexpr std::array<std::string_view, kQpStates> kNames{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  return exists(state) ? kNames[static_cast<std::size_t>(state)] : "no state";
}

std::string_view name_of(QpType type) noexcept {
  switch (type) {
    case QpType::kRc:
      return "RC";
    case QpType::kUc:
      return "UC";
    case QpType::kUd:
      return "UD";
    case QpType::kRawPacket:
      return "RAW_PACKET";
    case QpType::kXrcSend:
      return "XRC_SEND";
    case QpType::kXrcReceive:
      return "XRC_RECV";
  }
  return "no type";
}

const QpEdge& edge_of(QpType type, QpState from, QpState to) noexcept {
  static constexpr QpEdge kNoEdge{};
  if (!exists(from) || !exists(to)) return kNoEdge;
  return table_for(type)[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
}

int check_transition(QpType type, QpState from, QpState to, AttrMask mask) noexcept {
  const QpEdge& edge = edge_of(type, from, to);
  if (!edge.valid) return EINVAL;
  if ((mask & edge.required) != edge.required) return EINVAL;
  if ((mask & ~(edge.required | edge.optional | kAttrState)) != 0) return EINVAL;
  if ((mask & kAttrCurrentState) != 0 && !may_be_named(from)) return EINVAL;
  return 0;
}

}  // namespace verbena::engine
