#include "cli/descriptor_limit.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rdma/verbs_error.h"

namespace verbena::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(DescriptorLimit, TheHardLimitIsNotToBeRaisedByTheUser) {
  EXPECT_THAT(rdma::files_in_words(4, 4),
              AllOf(HasSubstr("may have 4 open files"), HasSubstr("administrator"), Not(HasSubstr("up to"))));
  EXPECT_THAT(rdma::files_in_words(4, 64), AllOf(HasSubstr("up to 64"), Not(HasSubstr("administrator"))));
  EXPECT_THAT(rdma::files_in_words(4, ~0ULL), HasSubstr("up to any number"));
}

TEST(DescriptorLimit, AShortageIsToldAsWhatItIs) {
  EXPECT_TRUE(is_descriptor_shortage(EMFILE) && is_descriptor_shortage(ENFILE));
  EXPECT_FALSE(is_descriptor_shortage(0) || is_descriptor_shortage(ENODEV));
  const Error error = descriptor_shortage("cannot look", EMFILE);
  EXPECT_EQ(error.code, ErrorCode::kExhausted);
  EXPECT_THAT(error.message, AllOf(HasSubstr("cannot look: Too many open files"), HasSubstr("ulimit -n")));
}

}  // namespace
}  // namespace verbena::cli
