#include "cli/command_line.h"

#include <cstdlib>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "cli/exit_code.h"

namespace verbena::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

struct Outcome {
  int code = -1;
  std::string out;
  std::string error;
};

Outcome run(std::vector<const char*> words) {
  words.insert(words.begin(), "verbena");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Outcome outcome;
  outcome.code = run_command_line(static_cast<int>(words.size()), words.data());
  outcome.out = testing::internal::GetCapturedStdout();
  outcome.error = testing::internal::GetCapturedStderr();
  return outcome;
}

// Of a run whose words on stderr reach nobody: it is closed, or on a full disk.
int code_of_unheard(std::vector<const char*> words, bool closed) {
  words.insert(words.begin(), "verbena");
  const int kept = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ::dup2(full, STDERR_FILENO);
  ::close(full);
  if (closed) ::close(STDERR_FILENO);
  const int code = run_command_line(static_cast<int>(words.size()), words.data());
  ::dup2(kept, STDERR_FILENO);
  ::close(kept);
  return code;
}

TEST(CommandLine, TheStatusIsTheSameWhereStderrCannotBeWritten) {
  for (const bool closed : {false, true}) {
    EXPECT_EQ(code_of_unheard({}, closed), kExitUsage);
    EXPECT_EQ(code_of_unheard({"nonsense"}, closed), kExitUsage);
    EXPECT_EQ(code_of_unheard({"devices", "--bad"}, closed), kExitUsage);
    EXPECT_EQ(code_of_unheard({"ping"}, closed), kExitUsage);
    EXPECT_EQ(code_of_unheard({"run", "--", "/nonexistent/command"}, closed), kExitFailed);
  }
}

TEST(CommandLine, WithoutASubcommandShowsTheHelpAndIsAUsageError) {
  const Outcome outcome = run({});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.error, HasSubstr("verbena demo"));
}

TEST(CommandLine, HelpGoesToStdout) {
  const Outcome outcome = run({"--help"});
  EXPECT_EQ(outcome.code, kExitOk);
  EXPECT_THAT(outcome.error, IsEmpty());
  for (const char* word : {"run", "demo", "ping", "devices", "gids", "drops", "doctor", "version"}) {
    EXPECT_THAT(outcome.out, HasSubstr(word));
  }
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("demo-responder")));
}

TEST(CommandLine, EverySubcommandTeachesByExamples) {
  for (const char* subcommand : {"run", "demo", "ping", "devices", "gids", "drops", "doctor"}) {
    const Outcome outcome = run({subcommand, "--help"});
    EXPECT_EQ(outcome.code, kExitOk) << subcommand;
    EXPECT_THAT(outcome.out, HasSubstr("Examples:")) << subcommand;
    EXPECT_THAT(outcome.out, HasSubstr(std::string("verbena ") + subcommand)) << subcommand;
  }
}

TEST(CommandLine, VersionIsPrintedBothWays) {
  const Outcome flag = run({"--version"});
  const Outcome word = run({"version"});
  EXPECT_EQ(flag.code, kExitOk);
  EXPECT_EQ(word.code, kExitOk);
  EXPECT_EQ(flag.out, word.out);
  EXPECT_THAT(word.out, testing::MatchesRegex("verbena [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(CommandLine, WhatIsWrongIsAUsageErrorOnStderr) {
  const std::vector<std::vector<const char*>> cases{
      {"nonsense"},
      {"--nonsense"},
      {"devices", "--nonsense"},
      {"devices", "extra"},
      {"gids", "--device"},
      {"gids", "--to", "nonsense"},
      {"gids", "--to", ""},
      {"gids", "--to", "fe80::1%nowhere0"},
      {"gids", "--to", "192.0.2.1%lo"},
      {"gids", "--to", "fe80::1%99999999999"},
      {"gids", "--to", "fe80::1%0"},
      {"gids", "--to", "fe80::1%"},
      {"gids", "--to", "10.0.0.1,hops=7"},
      {"gids", "--to", "lid=7"},
      {"gids", "--device", ""},
      {"doctor", ""},
      {"doctor", "--dlid", "0"},
      {"doctor", "host", "--port", "0"},
      {"doctor", "host", "--port", "70000"},
      {"doctor", "explain", "wc", ""},
      {"ping", "host", "--port", "0"},
      {"drops", "--pid", "-1"},
      {"drops", "--pid", "x"},
      {"drops", "--interval", "0"},
      {"drops", "--interval", "nan"},
      {"ah", "top", "--interval", "nan"},
      {"ping", "host", "-i", "nan"},
      {"ping", "host", "-t", "-nan"},
      {"ping", "host", "-t", "inf"},
      {"ping"},
      {"ping", "host", "--listen"},
      {"ping", "host", "--once"},
      {"ping", "host", "-c", "-5"},
      {"ping", "host", "-c", "many"},
      {"ping", "host", "-s", "15"},
      {"ping", "host", "-s", "4097"},
      {"ping", "host", "-w", "0"},
      {"ping", "host", "-w", "100000"},
      {"ping", "host", "-i", "-1"},
      {"ping", "host", "-t", "0"},
      {"ping", "host", "--port", "65536"},
      {"ping", "host", "other"},
      {"ping", "host", "--log", "loud"},
      {"demo", "--destinations", "0"},
      {"demo", "--count", "0"},
      {"demo", "--size", "1"},
      {"run"},
      {"run", "--"},
      {"run", "--nonsense", "--", "true"},
      {"run", "--devices", "--", "true"},
      {"run", "--log", "loud", "--", "true"},
      {"run", "--", ""},
      {"run", "-c", "true"},
      {"run", "--impair", "nonsense", "--", "true"},
      {"run", "--devices", "no-such-if", "--", "true"},
      {"ping", "host", "--impair", "loss=200%"},
      {"ping", "--listen", "--devices", "no-such-if"},
      {"demo", "--impair", "nonsense"},
      {"demo", "--limits", "nonsense"},
      {"run", "--inject", "create_ah.fail=nonsense", "--", "true"},
      {"demo", "--pcap", "/nonexistent/folder/file"},
      {"doctor", "--peers", "3"},
      {"doctor", "--hop-limit", "1"},
      {"doctor", "--qkey", "5"},
      {"doctor", "--serve", "--traffic-class", "4"},
      {"demo", "--pcap", "/"},
      {"ping", "host", "--pcap", "/etc/passwd"},
      {"run", "--pcap", "/", "--", "true"},
      {"nonsense", "--help"},
      {"--help", "nonsense"},
      {""},
  };
  for (const auto& words : cases) {
    const Outcome outcome = run(words);
    for (const char* variable :
         {"VERBENA_DEVICES", "VERBENA_IMPAIR", "VERBENA_PCAP", "VERBENA_LIMITS", "VERBENA_INJECT"})
      ::unsetenv(variable);
    std::string line;
    for (const char* word : words) line += std::string(" ") + word;
    EXPECT_EQ(outcome.code, kExitUsage) << line << "\n" << outcome.error;
    EXPECT_THAT(outcome.out, IsEmpty()) << line;
    EXPECT_THAT(outcome.error, HasSubstr("verbena")) << line;
    EXPECT_THAT(outcome.error, HasSubstr("--help")) << line;
  }
}

TEST(CommandLine, ANumberThatIsRefusedIsToldWithWhatItMustBe) {
  for (const std::vector<const char*>& words : std::vector<std::vector<const char*>>{{"drops", "--pid", "0"},
                                                                                     {"ah", "dump", "--pid", "0"},
                                                                                     {"drops", "--pid", "-1"},
                                                                                     {"drops", "--pid", "1.5"}}) {
    EXPECT_THAT(run(words).error, HasSubstr(std::string(words.back()) + " is not a positive whole number"));
  }
  EXPECT_THAT(run({"doctor", "node7", "--peers", "0"}).error, HasSubstr("0 is not a positive whole number"));
  EXPECT_THAT(run({"ping", "host", "-t", "nan"}).error, HasSubstr("nan is not a number from 0.1 to 3600000"));
}

TEST(CommandLine, AnUnknownSubcommandIsNamedWithWhatItStandsUnder) {
  EXPECT_EQ(run({"foo"}).error, "verbena: there is no subcommand foo\nTry: verbena --help\n");
  EXPECT_EQ(run({"ah", "foo"}).error, "verbena ah: there is no subcommand foo\nTry: verbena ah --help\n");
  EXPECT_EQ(run({"ah", "--pid", "7"}).code, kExitUsage);
  EXPECT_EQ(run({"ah", "foo"}).code, kExitUsage);
}

TEST(CommandLine, ASettingOfTheEnvironmentThatIsRefusedIsAFailureAndNamed) {
  ::setenv("VERBENA_DEVICES", "no-such-if", 1);
  for (const std::vector<const char*>& words : std::vector<std::vector<const char*>>{{"devices"}, {"gids"}, {"demo"}}) {
    const Outcome outcome = run(words);
    EXPECT_EQ(outcome.code, kExitFailed) << words.front();
    EXPECT_THAT(outcome.error, HasSubstr("no-such-if")) << words.front();
  }
  ::unsetenv("VERBENA_DEVICES");
}

TEST(CommandLine, RunWithoutTheLibraryFailsAndSaysWhatIsMissing) {
  const Outcome outcome = run({"run", "--", "/nonexistent/command"});
  EXPECT_EQ(outcome.code, kExitFailed);
  EXPECT_THAT(outcome.error, HasSubstr("verbena run: cannot"));
}

}  // namespace
}  // namespace verbena::cli
