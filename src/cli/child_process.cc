#include "cli/child_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdma/verbs_error.h"
#include "verbena/deadline.h"

namespace verbena::cli {
namespace {

constexpr auto kEndPatience = std::chrono::seconds(2);

Result<pid_t> spawn(std::vector<std::string> words, int channel) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, channel, kChildChannelFd);
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return pid;
  return failure(ErrorCode::kUnavailable, fmt::format("cannot start a second process: {}", std::strerror(error)),
                 error);
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& arguments) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return rdma::verbs_failure("socketpair", "to a second process", errno);
  }
  Descriptor ours(ends[0]);
  const Descriptor theirs(ends[1]);
  std::vector<std::string> words{"verbena"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const auto pid = spawn(std::move(words), theirs.get());
  if (!pid) return tl::make_unexpected(pid.error());
  return ChildProcess(*pid, ControlChannel(std::move(ours)));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), channel_(std::move(other.channel_)) {}

ChildProcess::~ChildProcess() {
  if (pid_ == 0) return;
  channel_ = ControlChannel();
  const Deadline deadline = Deadline::in(kEndPatience);
  while (::waitpid(pid_, nullptr, WNOHANG) == 0) {
    if (deadline.passed()) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
      return;
    }
    ::poll(nullptr, 0, 2);
  }
}

}  // namespace verbena::cli
