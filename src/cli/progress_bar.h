// A bar on the terminal's last line while a long run goes on. Silent where stderr is no terminal, and in the first half
// second: a short run needs none.
//
// Thread-safety: none; one owner at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/instant.h"

namespace verbena::cli {

// "ping  [#######.............]  35%  3,500 of 10,000  1.24 M/s  6 s left". With `total` 0 there is no end: no bar
// then.
std::string render_progress(std::string_view label, std::uint64_t done, std::uint64_t total, Duration elapsed);

class ProgressBar {
 public:
  // `wanted` false makes it silent whatever stderr is.
  ProgressBar(std::string label, std::uint64_t total, Instant now, bool wanted);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Draws at most ten times a second. Cheap enough to be called for each datagram.
  void update(std::uint64_t done, Instant now);
  // Takes the bar away.
  void clear();

 private:
  std::string label_;
  std::uint64_t total_;
  Instant start_;
  Instant next_draw_;
  bool active_;
  bool drawn_ = false;
};

}  // namespace verbena::cli
