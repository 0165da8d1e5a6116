// A file descriptor that is closed with its owner.
#pragma once

#include <utility>

#include "transport/fork_set.h"

namespace verbena::transport {

class Fd {
 public:
  Fd() noexcept = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  // Also kept in `set`, which outlives this, for as long as it is open.
  Fd(int fd, ForkSet& set) noexcept : fd_(fd), set_(&set) { set.add(fd); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)), set_(std::exchange(other.set_, nullptr)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
      set_ = std::exchange(other.set_, nullptr);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  void reset() noexcept;

 private:
  int fd_ = -1;
  ForkSet* set_ = nullptr;
};

}  // namespace verbena::transport
