#include "host/report_name.h"

#include <gtest/gtest.h>

#include "host/unix_socket_line.h"

namespace verbena::host {
namespace {

TEST(ReportName, IsReadAsItIsWritten) {
  for (const ReportName& name : {ReportName{1, 0}, ReportName{4711, 3}, ReportName{4194304, 4294967295}}) {
    EXPECT_EQ(parse_report_name(to_socket_name(name)), name);
  }
}

TEST(ReportName, IsNothingElse) {
  const std::string good = to_socket_name({4711, 3});
  EXPECT_EQ(good.front(), '\0');
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(parse_report_name(good.substr(0, length)) == ReportName({4711, 3})) << length;
  }
  const std::string prefix = good.substr(0, 23);
  for (const char* rest :
       {"", "/", "4711", "4711/", "/3", "0/3", "04711/3", "4711/03", "4711/3/1", "-1/3", "4711/3 "}) {
    EXPECT_FALSE(parse_report_name(prefix + rest)) << rest;
  }
}

TEST(ListeningSocket, IsFoundByItsName) {
  const auto socket = parse_listening_socket(
      "0000000000000000: 00000002 00000000 00010000 0005 01 4026531 @verbena/1/directories/4711/0\n");
  ASSERT_TRUE(socket);
  EXPECT_EQ(parse_report_name(socket->name), (ReportName{4711, 0}));
  EXPECT_EQ(socket->inode, 4026531U);
}

}  // namespace
}  // namespace verbena::host
