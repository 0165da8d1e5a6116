#include "rdma/error_explanation.h"

#include <cerrno>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rdma/attribute_check.h"

namespace verbena::rdma {
namespace {

using ::testing::HasSubstr;

TEST(ErrorExplanation, HasEveryCompletionStatusOfTheHeaderInItsPlace) {
  const auto& table = status_explanations();
  ASSERT_EQ(table.size(), static_cast<std::size_t>(IBV_WC_TM_RNDV_INCOMPLETE) + 1);
  for (std::size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(table[i].status), i) << table[i].name;
    EXPECT_FALSE(table[i].causes.empty()) << table[i].name;
    EXPECT_EQ(find_status(std::to_string(i)), &table[i]);
    EXPECT_EQ(find_status(table[i].name), &table[i]);
    EXPECT_EQ(find_status(table[i].name.substr(7)), &table[i]);
  }
  // The library knows no status beyond the last of the table.
  EXPECT_STREQ(ibv_wc_status_str(static_cast<ibv_wc_status>(table.size())), "unknown");
}

TEST(ErrorExplanation, HasEveryAsynchronousEventOfTheHeaderInItsPlace) {
  const auto& table = event_explanations();
  ASSERT_EQ(table.size(), static_cast<std::size_t>(IBV_EVENT_WQ_FATAL) + 1);
  for (std::size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(table[i].type), i) << table[i].name;
    EXPECT_FALSE(table[i].causes.empty()) << table[i].name;
    EXPECT_EQ(find_event(table[i].name), &table[i]);
  }
}

TEST(ErrorExplanation, EachRowIsThereOnceAndSaysSomething) {
  std::set<std::pair<std::string_view, int>> seen;
  for (const CallExplanation& row : call_explanations()) {
    EXPECT_TRUE(seen.emplace(row.call, row.error).second) << row.call << " " << row.error;
    EXPECT_FALSE(row.meaning.empty()) << row.call;
    EXPECT_FALSE(row.causes.empty()) << row.call;
    for (const LikelyCause& cause : row.causes) EXPECT_FALSE(cause.remedy.empty()) << row.call << ": " << cause.what;
  }
}

TEST(ErrorExplanation, KnowsWhatXrcRefuses) {
  const auto causes_of = [](const CallExplanation* row) {
    std::string text;
    if (row != nullptr) {
      for (const LikelyCause& cause : row->causes) text += std::string(cause.what) + "; ";
    }
    return text;
  };
  EXPECT_THAT(causes_of(find_explanation("ibv_open_xrcd", EAGAIN)), HasSubstr("O_CREAT"));
  EXPECT_THAT(causes_of(find_explanation("ibv_open_xrcd", EAGAIN)), HasSubstr("another process"));
  EXPECT_THAT(causes_of(find_explanation("ibv_open_xrcd", EOPNOTSUPP)), HasSubstr("rxe"));
  EXPECT_THAT(causes_of(find_explanation("ibv_close_xrcd", EBUSY)), HasSubstr("IBV_SRQT_XRC"));
  EXPECT_THAT(causes_of(find_explanation("ibv_create_qp_ex", EINVAL)), HasSubstr("IBV_QP_INIT_ATTR_XRCD"));
  EXPECT_THAT(causes_of(find_explanation("ibv_create_qp", EINVAL)), HasSubstr("IBV_QPT_XRC_RECV"));
  EXPECT_THAT(causes_of(find_explanation("ibv_open_qp", EINVAL)), HasSubstr("no queue pair of this number"));
  EXPECT_THAT(causes_of(find_explanation("ibv_create_srq_ex", EINVAL)), HasSubstr("IBV_SRQ_INIT_ATTR_CQ"));
  EXPECT_THAT(causes_of(find_explanation("ibv_get_srq_num", EINVAL)), HasSubstr("IBV_SRQT_XRC"));
  EXPECT_THAT(causes_of(find_explanation("ibv_post_recv", EINVAL)), HasSubstr("XRC"));
  std::string unknown_queue;
  for (const LikelyCause& cause : find_status("REM_INV_REQ_ERR")->causes) unknown_queue += cause.what;
  EXPECT_THAT(unknown_queue, HasSubstr("remote_srqn"));
}

TEST(ErrorExplanation, KnowsTheCommonCalls) {
  for (const char* call : {"ibv_get_device_list", "ibv_open_device",       "ibv_query_port",
                           "ibv_query_gid",       "ibv_alloc_pd",          "ibv_dealloc_pd",
                           "ibv_reg_mr",          "ibv_dereg_mr",          "ibv_create_comp_channel",
                           "ibv_create_cq",       "ibv_destroy_cq",        "ibv_create_qp",
                           "ibv_modify_qp",       "ibv_destroy_qp",        "ibv_create_srq",
                           "ibv_post_send",       "ibv_post_recv",         "ibv_poll_cq",
                           "ibv_create_ah",       "ibv_create_ah_from_wc", "ibv_destroy_ah",
                           "ibv_attach_mcast",    "ibv_get_async_event"}) {
    EXPECT_TRUE(find_call(call)) << call;
    EXPECT_EQ(find_call(std::string(call).substr(4)), find_call(call)) << call;
  }
  EXPECT_FALSE(find_call("ibv_make_coffee"));
}

TEST(ErrorExplanation, ReadsAnErrnoByNameAndNumberInEitherSign) {
  EXPECT_EQ(find_errno("EINVAL"), EINVAL);
  EXPECT_EQ(find_errno("enomem"), ENOMEM);
  EXPECT_EQ(find_errno("22"), EINVAL);
  EXPECT_EQ(find_errno("-22"), EINVAL);
  EXPECT_EQ(find_errno("EOPNOTSUPP"), EOPNOTSUPP);
  for (const char* word : {"", "0", "E", "EFOO", "9999", "22x"}) EXPECT_FALSE(find_errno(word)) << word;
}

TEST(ErrorExplanation, AnyOtherErrnoHasAGeneralMeaning) {
  for (int error = 1; error <= 133; ++error) {
    EXPECT_FALSE(general_explanation("ibv_create_ah", error).meaning.empty()) << error;
    EXPECT_FALSE(general_explanation("ibv_create_ah", error).causes.empty()) << error;
  }
}

DeviceFacts device_with_ipv4_at_3() {
  DeviceFacts device{.name = "mlx5_0"};
  PortFacts port;
  port.view = {.port = 1,
               .link_layer = LinkLayer::kEthernet,
               .active = true,
               .state = "PORT_ACTIVE",
               .active_mtu = 1024,
               .lid = 0,
               .gid_table_length = 16,
               .grh_required = true};
  device.ports = {port};
  device.gids = {{.gid = *parse_gid("10.0.0.1"), .type = GidType::kRoceV2, .port = 1, .index = 3, .netdev = 2}};
  return device;
}

// The verdict on one attribute, the worst where there are several; "" where there is none.
std::string verdict(const std::vector<std::string>& words, const std::string& attribute, const DeviceFacts* device) {
  const auto attributes = parse_attributes(words);
  if (!attributes) return "refused";
  std::string text;
  for (const AttributeFinding& finding : check_attributes(*attributes, device)) {
    if (finding.attribute != attribute) continue;
    if (finding.verdict == AttributeVerdict::kWrong) return "wrong: " + finding.text;
    text = (finding.verdict == AttributeVerdict::kSuspicious ? "suspicious: " : "fits: ") + finding.text;
  }
  return text;
}

TEST(AttributeCheck, SaysWhichAttributeOfAnAddressIsWrong) {
  const DeviceFacts device = device_with_ipv4_at_3();
  EXPECT_THAT(verdict({"gid_index=3", "dgid=fe80::1"}, "gid_index", &device),
              HasSubstr("wrong: the destination fe80::1 is link-local IPv6"));
  EXPECT_THAT(verdict({"gid_index=3", "dgid=10.0.0.2"}, "gid_index", &device), HasSubstr("fits"));
  EXPECT_THAT(verdict({"sgid_index=4", "dgid=10.0.0.2"}, "gid_index", &device), HasSubstr("is empty"));
  EXPECT_THAT(verdict({"is_global=0"}, "is_global", &device), HasSubstr("wrong: 0 on an Ethernet port"));
  EXPECT_THAT(verdict({"is_global=0", "link_layer=infiniband"}, "is_global", nullptr), HasSubstr("fits"));
  EXPECT_THAT(verdict({"dgid=::"}, "dgid", &device), HasSubstr("zero GID"));
  EXPECT_THAT(verdict({"port=2"}, "port", &device), HasSubstr("wrong: mlx5_0 has 1 port"));
  EXPECT_THAT(verdict({"port=0"}, "port", nullptr), HasSubstr("wrong"));
  EXPECT_THAT(verdict({"dlid=0", "link_layer=ib"}, "dlid", nullptr), HasSubstr("wrong"));
  EXPECT_THAT(verdict({"hop_limit=1"}, "hop_limit", nullptr), HasSubstr("suspicious"));
  EXPECT_THAT(verdict({"hop_limit=0"}, "hop_limit", nullptr), HasSubstr("wrong"));
  EXPECT_THAT(verdict({"sl=16"}, "sl", nullptr), HasSubstr("wrong"));
  EXPECT_THAT(verdict({"flow_label=0x100000"}, "flow_label", nullptr), HasSubstr("wrong"));
  EXPECT_THAT(verdict({"static_rate=1"}, "static_rate", nullptr), HasSubstr("wrong"));
  EXPECT_THAT(verdict({"qkey=0x80000000"}, "qkey", nullptr), HasSubstr("suspicious"));
  EXPECT_THAT(verdict({"path_mtu=4096"}, "path_mtu", &device), HasSubstr("wrong: 4096, and this port carries 1024"));
  EXPECT_THAT(verdict({"access=REMOTE_WRITE"}, "access", nullptr), HasSubstr("LOCAL_WRITE"));
}

TEST(AttributeCheck, RefusesWhatItCannotRead) {
  for (const char* word : {"gid_index", "gid_index=", "gid_index=three", "dgid=fe80", "coffee=1", "hop_limit=-1"}) {
    EXPECT_FALSE(parse_attributes({word})) << word;
  }
  EXPECT_THAT(parse_attributes({"coffee=1"}).error().message, HasSubstr("gid_index"));
}

TEST(TransitionCheck, SaysWhichBitIsMissingOrTooMuch) {
  EXPECT_THAT(
      verdict({"type=RC", "from=INIT", "to=RTR",
               "mask=IBV_QP_STATE|IBV_QP_AV|IBV_QP_PATH_MTU|IBV_QP_DEST_QPN|IBV_QP_RQ_PSN|IBV_QP_MIN_RNR_TIMER"},
              "mask", nullptr),
      HasSubstr("IBV_QP_MAX_DEST_RD_ATOMIC is missing"));
  EXPECT_THAT(verdict({"type=UD", "from=INIT", "to=RTR", "mask=STATE,AV"}, "mask", nullptr),
              HasSubstr("IBV_QP_AV is not taken"));
  EXPECT_THAT(verdict({"type=UD", "from=RTR", "to=RTS", "mask=STATE|SQ_PSN"}, "mask", nullptr), HasSubstr("fits"));
  EXPECT_THAT(verdict({"type=RC", "from=RESET", "to=RTR"}, "to", nullptr), HasSubstr("wrong"));
  EXPECT_THAT(verdict({"type=RC", "from=RESET", "to=ERR"}, "to", nullptr), HasSubstr("wrong"));
  EXPECT_THAT(verdict({"type=RC", "from=SQE", "to=RTS"}, "to", nullptr), HasSubstr("wrong"));
  EXPECT_THAT(verdict({"type=UC", "from=SQE", "to=RTS"}, "to", nullptr), HasSubstr("fits"));
  EXPECT_THAT(verdict({"to=SLEEPING"}, "to", nullptr), HasSubstr("there is no state"));
}

TEST(AttributeCheck, JudgesLidsAndPathBitsByThePort) {
  DeviceFacts device;
  device.name = "ib0";
  device.ports.emplace_back();
  device.ports[0].view.port = 1;
  device.ports[0].view.link_layer = LinkLayer::kInfiniBand;
  device.ports[0].view.active = true;
  const auto verdict = [&](const std::vector<std::string>& words, const std::string& name, std::uint8_t lmc,
                           const DeviceFacts* with) {
    device.ports[0].view.lmc = lmc;
    for (const AttributeFinding& finding : check_attributes(*parse_attributes(words), with)) {
      if (finding.attribute == name) return std::pair(finding.verdict, finding.text);
    }
    return std::pair(AttributeVerdict::kUnknown, std::string("nothing is said of it"));
  };
  using enum AttributeVerdict;
  const auto bits = [&](const char* value, std::uint8_t lmc) {
    return verdict({"dlid=5", std::string("src_path_bits=") + value}, "src_path_bits", lmc, &device);
  };
  EXPECT_EQ(bits("4", 0).first, kWrong);
  EXPECT_THAT(bits("4", 0).second, HasSubstr("LMC 0"));
  EXPECT_EQ(bits("0", 0).first, kFits);
  EXPECT_EQ(bits("3", 2).first, kFits);
  EXPECT_EQ(bits("4", 2).first, kWrong);
  EXPECT_EQ(bits("128", 7).first, kWrong);
  EXPECT_THAT(verdict({"src_path_bits=4"}, "src_path_bits", 0, nullptr).second, HasSubstr("LMC"));
  EXPECT_EQ(verdict({"dlid=65535"}, "dlid", 0, &device).first, kWrong);
  EXPECT_EQ(verdict({"dlid=65536"}, "dlid", 0, nullptr).first, kWrong);
  EXPECT_EQ(verdict({"dlid=0xc001", "is_global=0"}, "dlid", 0, &device).first, kWrong);
  EXPECT_EQ(verdict({"dlid=0xc001"}, "dlid", 0, &device).first, kSuspicious);
  EXPECT_EQ(verdict({"dlid=0xbfff"}, "dlid", 0, &device).first, kFits);
}

}  // namespace
}  // namespace verbena::rdma
