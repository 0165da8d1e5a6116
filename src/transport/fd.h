// A file descriptor that is closed with its owner. Never one of the first three, which a program may have closed and
// others print to all the same.
#pragma once

#include <utility>

#include "transport/fork_set.h"

namespace verbena::transport {

class Fd {
 public:
  Fd() noexcept = default;
  // A number below 3 is given up for another, where there is one.
  explicit Fd(int fd) noexcept : fd_(beyond_standard(fd)) {}
  // Also kept in `set`, which outlives this, for as long as it is open.
  Fd(int fd, ForkSet& set) noexcept : fd_(beyond_standard(fd)), set_(&set) { set.add(fd_); }
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
  static int beyond_standard(int fd) noexcept;

  int fd_ = -1;
  ForkSet* set_ = nullptr;
};

}  // namespace verbena::transport
