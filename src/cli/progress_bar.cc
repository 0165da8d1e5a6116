#include "cli/progress_bar.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/error_output.h"
#include "cli/figures.h"

namespace verbena::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kWidth = 24;
constexpr const char* kEraseLine = "\r\x1b[K";

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

std::string render_progress(std::string_view label, std::uint64_t done, std::uint64_t total, Duration elapsed) {
  const double rate = elapsed > 0ns ? static_cast<double>(done) / seconds(elapsed) : 0;
  if (total == 0) return fmt::format("{}  {}  {}", label, format_count(done), format_rate(rate));
  const double fraction = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto filled = static_cast<std::size_t>(fraction * static_cast<double>(kWidth));
  std::string left;
  if (rate > 0 && done < total) left = fmt::format("  {:.0f} s left", static_cast<double>(total - done) / rate);
  return fmt::format("{}  [{:#<{}}{:.<{}}]  {:.0f}%  {} of {}  {}{}", label, "", filled, "", kWidth - filled,
                     100 * fraction, format_count(done), format_count(total), format_rate(rate), left);
}

ProgressBar::ProgressBar(std::string label, std::uint64_t total, Instant now, bool wanted)
    : label_(std::move(label)),
      total_(total),
      start_(now),
      next_draw_(now + 500ms),
      active_(wanted && ::isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  clear();
}

void ProgressBar::update(std::uint64_t done, Instant now) {
  if (!active_ || now < next_draw_) return;
  next_draw_ = now + 100ms;
  drawn_ = true;
  print_error("{}{}", kEraseLine, render_progress(label_, done, total_, now - start_));
}

void ProgressBar::clear() {
  if (std::exchange(drawn_, false)) print_error("{}", kEraseLine);
}

}  // namespace verbena::cli
