#include "engine/qp_state.h"

#include <cerrno>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

namespace verbena::engine {
namespace {

// The table as the specification prints it, one line an edge: types, from, to, required, optional. Read by
// parse_table().
constexpr std::string_view kTable = R"(
UD        RESET INIT  PKEY_INDEX,PORT,QKEY                                          -
UC,RC,XS,XR RESET INIT PKEY_INDEX,PORT,ACCESS                                       -
RAW       RESET INIT  PORT                                                          -
UD        INIT  INIT  -      PKEY_INDEX,PORT,QKEY
UC,RC,XS,XR INIT INIT -      PKEY_INDEX,PORT,ACCESS
RAW       INIT  INIT  -      PORT
UD        INIT  RTR   -      PKEY_INDEX,QKEY
UC,XS     INIT  RTR   AV,PATH_MTU,DEST_QPN,RQ_PSN                                   ALT_PATH,ACCESS,PKEY_INDEX
RC,XR     INIT  RTR   AV,PATH_MTU,DEST_QPN,RQ_PSN,MAX_DEST_RD_ATOMIC,MIN_RNR_TIMER  ALT_PATH,ACCESS,PKEY_INDEX
RAW       INIT  RTR   -      -
UD        RTR   RTS   SQ_PSN CUR_STATE,QKEY
UC        RTR   RTS   SQ_PSN CUR_STATE,ALT_PATH,ACCESS,PATH_MIG_STATE
RC        RTR   RTS   TIMEOUT,RETRY_CNT,RNR_RETRY,SQ_PSN,MAX_RD_ATOMIC              CUR_STATE,ALT_PATH,ACCESS,PATH_MIG_STATE,MIN_RNR_TIMER
XS        RTR   RTS   TIMEOUT,RETRY_CNT,RNR_RETRY,SQ_PSN,MAX_RD_ATOMIC              CUR_STATE,ALT_PATH,ACCESS,PATH_MIG_STATE
XR        RTR   RTS   TIMEOUT,SQ_PSN                                                CUR_STATE,ALT_PATH,ACCESS,PATH_MIG_STATE,MIN_RNR_TIMER
RAW       RTR   RTS   -      RATE_LIMIT
UD        RTS   RTS   -      CUR_STATE,QKEY
UC,XS     RTS   RTS   -      CUR_STATE,ALT_PATH,ACCESS,PATH_MIG_STATE
RC,XR     RTS   RTS   -      CUR_STATE,ALT_PATH,ACCESS,PATH_MIG_STATE,MIN_RNR_TIMER
RAW       RTS   RTS   -      RATE_LIMIT
UD,UC,RC,XS,XR,RAW RTS SQD - EN_SQD
UD        SQD   RTS   -      CUR_STATE,QKEY
UC,XS     SQD   RTS   -      CUR_STATE,ALT_PATH,ACCESS,PATH_MIG_STATE
RC,XR     SQD   RTS   -      CUR_STATE,ALT_PATH,ACCESS,PATH_MIG_STATE,MIN_RNR_TIMER
RAW       SQD   RTS   -      -
UD        SQD   SQD   -      PKEY_INDEX,QKEY
UC        SQD   SQD   -      AV,ALT_PATH,ACCESS,PKEY_INDEX,PATH_MIG_STATE
RC        SQD   SQD   -      PORT,AV,TIMEOUT,RETRY_CNT,RNR_RETRY,MAX_RD_ATOMIC,MAX_DEST_RD_ATOMIC,ALT_PATH,ACCESS,PKEY_INDEX,MIN_RNR_TIMER,PATH_MIG_STATE
XS        SQD   SQD   -      PORT,AV,TIMEOUT,RETRY_CNT,RNR_RETRY,MAX_RD_ATOMIC,ALT_PATH,ACCESS,PKEY_INDEX,PATH_MIG_STATE
XR        SQD   SQD   -      PORT,AV,TIMEOUT,MAX_DEST_RD_ATOMIC,ALT_PATH,ACCESS,PKEY_INDEX,MIN_RNR_TIMER,PATH_MIG_STATE
RAW       SQD   SQD   -      -
UD        SQE   RTS   -      CUR_STATE,QKEY
UC        SQE   RTS   -      CUR_STATE,ACCESS
RAW       SQE   RTS   -      -
)";

const std::map<std::string, AttrMask> kBits{{"CUR_STATE", 1U << 1},
                                            {"EN_SQD", 1U << 2},
                                            {"ACCESS", 1U << 3},
                                            {"PKEY_INDEX", 1U << 4},
                                            {"PORT", 1U << 5},
                                            {"QKEY", 1U << 6},
                                            {"AV", 1U << 7},
                                            {"PATH_MTU", 1U << 8},
                                            {"TIMEOUT", 1U << 9},
                                            {"RETRY_CNT", 1U << 10},
                                            {"RNR_RETRY", 1U << 11},
                                            {"RQ_PSN", 1U << 12},
                                            {"MAX_RD_ATOMIC", 1U << 13},
                                            {"ALT_PATH", 1U << 14},
                                            {"MIN_RNR_TIMER", 1U << 15},
                                            {"SQ_PSN", 1U << 16},
                                            {"MAX_DEST_RD_ATOMIC", 1U << 17},
                                            {"PATH_MIG_STATE", 1U << 18},
                                            {"DEST_QPN", 1U << 20},
                                            {"RATE_LIMIT", 1U << 25}};
const std::map<std::string, QpType> kTypes{{"UD", QpType::kUd},         {"UC", QpType::kUc},
                                           {"RC", QpType::kRc},         {"XS", QpType::kXrcSend},
                                           {"XR", QpType::kXrcReceive}, {"RAW", QpType::kRawPacket}};
const std::map<std::string, QpState> kStates{{"RESET", QpState::kReset},
                                             {"INIT", QpState::kInit},
                                             {"RTR", QpState::kReadyToReceive},
                                             {"RTS", QpState::kReadyToSend},
                                             {"SQD", QpState::kSendQueueDrained},
                                             {"SQE", QpState::kSendQueueError},
                                             {"ERR", QpState::kError}};

using Key = std::tuple<QpType, QpState, QpState>;

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream stream(list);
  for (std::string word; std::getline(stream, word, ',');) {
    if (word != "-") words.push_back(word);
  }
  return words;
}

AttrMask mask_of(const std::string& list) {
  AttrMask mask = 0;
  for (const std::string& word : split(list)) mask |= kBits.at(word);
  return mask;
}

std::map<Key, QpEdge> parse_table() {
  std::map<Key, QpEdge> edges;
  std::istringstream stream{std::string(kTable)};
  std::string types;
  std::string from;
  std::string to;
  std::string required;
  std::string optional;
  while (stream >> types >> from >> to >> required >> optional) {
    for (const std::string& type : split(types)) {
      edges[{kTypes.at(type), kStates.at(from), kStates.at(to)}] = {true, mask_of(required), mask_of(optional)};
    }
  }
  for (const auto& [name, type] : kTypes) {
    for (const auto& [from_name, state] : kStates) {
      edges[{type, state, QpState::kReset}] = {true, 0, 0};
      if (state != QpState::kReset) edges[{type, state, QpState::kError}] = {true, 0, 0};
    }
  }
  return edges;
}

template <class Check>
void for_each_edge(Check check) {
  const auto table = parse_table();
  for (const auto& [type_name, type] : kTypes) {
    for (const auto& [from_name, from] : kStates) {
      for (const auto& [to_name, to] : kStates) {
        SCOPED_TRACE(::testing::Message() << type_name << " " << from_name << " to " << to_name);
        const auto found = table.find({type, from, to});
        check(type, from, to, found == table.end() ? QpEdge{} : found->second);
      }
    }
  }
}

TEST(QpState, EveryEdgeIsThatOfTheSpecification) {
  int valid = 0;
  for_each_edge([&](QpType type, QpState from, QpState to, const QpEdge& expected) {
    const QpEdge& edge = edge_of(type, from, to);
    EXPECT_EQ(edge.valid, expected.valid);
    EXPECT_EQ(edge.required, expected.required);
    EXPECT_EQ(edge.optional, expected.optional);
    valid += expected.valid ? 1 : 0;
  });
  EXPECT_EQ(valid, 6 * 13 + 6 * 8 + 3) << "13 to RESET and ERR, 8 forward, and SQE to RTS for three";
}

TEST(QpState, EveryIllegalEdgeIsRefusedWithAnyMask) {
  for_each_edge([](QpType type, QpState from, QpState to, const QpEdge& expected) {
    if (expected.valid) return;
    EXPECT_EQ(check_transition(type, from, to, kAttrState), EINVAL);
    for (unsigned bit = 0; bit < 32; ++bit) EXPECT_EQ(check_transition(type, from, to, kAttrState | 1U << bit), EINVAL);
    EXPECT_EQ(check_transition(type, from, to, UINT32_MAX), EINVAL);
  });
}

TEST(QpState, EachRequiredBitIsRequiredAndEachForbiddenBitForbidden) {
  for_each_edge([](QpType type, QpState from, QpState to, const QpEdge& expected) {
    if (!expected.valid) return;
    EXPECT_EQ(check_transition(type, from, to, kAttrState | expected.required), 0);
    EXPECT_EQ(check_transition(type, from, to, expected.required), 0) << "the state bit says nothing";
    EXPECT_EQ(check_transition(type, from, to, kAttrState | expected.required | expected.optional), 0);
    for (unsigned number = 1; number < 32; ++number) {
      const AttrMask bit = 1U << number;
      const AttrMask with = kAttrState | expected.required | bit;
      const AttrMask without = kAttrState | (expected.required & ~bit);
      const bool allowed = ((expected.required | expected.optional) & bit) != 0;
      const bool required = (expected.required & bit) != 0;
      EXPECT_EQ(check_transition(type, from, to, with), allowed ? 0 : EINVAL) << "bit " << number;
      EXPECT_EQ(check_transition(type, from, to, without), required ? EINVAL : 0) << "bit " << number;
    }
  });
}

TEST(QpState, NumbersThatAreNoStateHaveNoEdge) {
  for (int number = 7; number < 256; ++number) {
    const auto none = static_cast<QpState>(number);
    EXPECT_EQ(check_transition(QpType::kUd, none, QpState::kReset, kAttrState), EINVAL);
    EXPECT_EQ(check_transition(QpType::kUd, QpState::kReset, none, kAttrState), EINVAL);
  }
}

TEST(QpState, NamesAreThoseOfVerbs) {
  EXPECT_EQ(name_of(QpState::kReadyToSend), "RTS");
  EXPECT_EQ(name_of(QpState::kSendQueueError), "SQE");
  EXPECT_EQ(name_of(QpType::kXrcReceive), "XRC_RECV");
}

}  // namespace
}  // namespace verbena::engine
