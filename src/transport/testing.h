// What the tests of this room share: datagrams to send, receivers and counters that remember, child processes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/datagram.h"

namespace verbena::transport::testing {

using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(std::string_view text) {
  Bytes bytes(text.size());
  std::transform(text.begin(), text.end(), bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

inline std::string text_of(ConstBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline Envelope example_envelope() {
  return {.source = Gid::from_ipv4(0x7f000001),
          .destination = Gid::from_ipv4(0x7f000002),
          .source_port = 50000,
          .traffic_class = 8,
          .hop_limit = 32};
}

// Owns what Outgoing only points to.
class Batch {
 public:
  Batch() = default;
  explicit Batch(const std::vector<std::string>& texts) {
    for (const auto& text : texts) add(example_envelope(), bytes_of(text));
  }

  Outgoing& add(const Envelope& envelope, Bytes bytes, bool has_icrc = false) {
    auto& item = items_.emplace_back();
    item.envelope = envelope;
    item.bytes = std::move(bytes);
    const auto half = item.bytes.size() / 2;
    item.parts = {std::span(item.bytes).first(half), std::span(item.bytes).subspan(half)};
    outgoing_.push_back({.envelope = &item.envelope,
                         .parts = item.parts,
                         .size = static_cast<std::uint32_t>(item.bytes.size()),
                         .slot = Slot{},
                         .has_icrc = has_icrc,
                         .network_header = {}});
    return outgoing_.back();
  }

  std::span<const Outgoing> get() const { return outgoing_; }

 private:
  struct Item {
    Envelope envelope;
    Bytes bytes;
    std::array<ConstBytes, 2> parts;
  };
  std::deque<Item> items_;
  std::vector<Outgoing> outgoing_;
};

struct Received {
  Envelope envelope;
  Bytes bytes;
  bool has_icrc = false;
};

class Recorder final : public Receiver {
 public:
  Receipt on_datagram(const Incoming& datagram) noexcept override {
    if (full) return Receipt::kLater;
    all.push_back({datagram.envelope, Bytes(datagram.bytes.begin(), datagram.bytes.end()), datagram.has_icrc});
    return Receipt::kTaken;
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> result;
    for (const auto& one : all) result.push_back(text_of(one.bytes));
    return result;
  }
  std::vector<Received> all;
  bool full = false;  // takes nothing
};

class Drops final : public DropCounter {
 public:
  void count(Drop drop, std::uint64_t how_many) noexcept override {
    const std::lock_guard lock(mutex_);
    counts_[static_cast<std::size_t>(drop)] += how_many;
  }
  void explain(std::string_view sentence) noexcept override {
    const std::lock_guard lock(mutex_);
    sentences_.emplace_back(sentence);
  }
  std::uint64_t of(Drop drop) const {
    const std::lock_guard lock(mutex_);
    return counts_[static_cast<std::size_t>(drop)];
  }
  std::uint64_t total() const {
    const std::lock_guard lock(mutex_);
    std::uint64_t sum = 0;
    for (const auto one : counts_) sum += one;
    return sum;
  }
  std::vector<std::string> sentences() const {
    const std::lock_guard lock(mutex_);
    return sentences_;
  }

 private:
  mutable std::mutex mutex_;
  std::array<std::uint64_t, kDropCount> counts_{};
  std::vector<std::string> sentences_;
};

// A child process that runs `work` and ends with its result; killed at the end if it still lives.
class Child {
 public:
  explicit Child(const std::function<int()>& work) : pid_(::fork()) {
    if (pid_ == 0) ::_exit(work());
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) kill_now();
  }

  pid_t pid() const { return pid_; }
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }
  void kill_now() {
    ::kill(pid_, SIGKILL);
    wait();
  }

 private:
  pid_t pid_;
};

// Whether these tests have a network namespace to themselves, in which they may do as they like.
bool in_own_network();

inline std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

}  // namespace verbena::transport::testing
