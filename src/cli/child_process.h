// This very program, started once more as a process of its own, with a socket pair to it.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "cli/control_channel.h"
#include "verbena/result.h"

namespace verbena::cli {

// The descriptor under which the child finds its end of the socket pair.
inline constexpr int kChildChannelFd = 3;

// Thread-safety: none; one owner at a time.
// Ownership:     owns the process: the destructor closes the channel, which ends a child that serves it, and waits; a
//                child that does not end within two seconds is killed.
class ChildProcess {
 public:
  // Starts `verbena ARGUMENTS...`. Errors: what the system refused.
  static Result<ChildProcess> start(const std::vector<std::string>& arguments);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  pid_t pid() const noexcept { return pid_; }
  ControlChannel& channel() noexcept { return channel_; }

 private:
  ChildProcess(pid_t pid, ControlChannel channel) : pid_(pid), channel_(std::move(channel)) {}

  pid_t pid_;
  ControlChannel channel_;
};

}  // namespace verbena::cli
