#include "hit_rounds.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <thread>

namespace verbena::bench {
namespace {

// Of a round's wall-clock time, what both threads must have had of a processor.
constexpr double kUndisturbed = 0.9;
constexpr int kTries = 20;

double seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Span {
  double processor = 0;
  double begin = 0;
  double end = 0;
};

Span timed(const HitWay& way, std::size_t thread, std::uint64_t look_ups) {
  Span span;
  span.begin = seconds_of(CLOCK_MONOTONIC);
  const double before = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  way.run(thread, look_ups);
  span.processor = seconds_of(CLOCK_THREAD_CPUTIME_ID) - before;
  span.end = seconds_of(CLOCK_MONOTONIC);
  return span;
}

double one_thread(const HitWay& way, std::uint64_t look_ups) {
  return timed(way, 0, look_ups).processor * 1e9 / static_cast<double>(look_ups);
}

struct TwoThreads {
  double ns = 0;
  bool undisturbed = false;
};

TwoThreads two_threads(const HitWay& way, std::uint64_t look_ups) {
  std::atomic<int> ready{0};
  std::array<Span, 2> spans{};
  const auto body = [&](std::size_t thread) {
    ready.fetch_add(1);
    while (ready.load() < 2) {
    }
    spans[thread] = timed(way, thread, look_ups);
  };
  std::thread other(body, 1);
  body(0);
  other.join();
  const double wall = std::max(spans[0].end, spans[1].end) - std::min(spans[0].begin, spans[1].begin);
  const double both = spans[0].processor + spans[1].processor;
  return {both / 2 * 1e9 / static_cast<double>(look_ups), both / 2 > kUndisturbed * wall};
}

TwoThreads two_threads_undisturbed(const HitWay& way, std::uint64_t look_ups) {
  TwoThreads measured;
  for (int i = 0; i < kTries && !measured.undisturbed; ++i) measured = two_threads(way, look_ups);
  return measured;
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<HitFigure> measure_hits(const std::vector<HitWay>& ways, std::size_t rounds, std::uint64_t look_ups) {
  std::vector<std::vector<double>> alone(ways.size());
  std::vector<std::vector<double>> together(ways.size());
  std::vector<HitFigure> figures(ways.size());
  for (const HitWay& way : ways) {
    one_thread(way, look_ups);
    two_threads(way, look_ups);
  }
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const std::size_t at = (i + round) % ways.size();
      alone[at].push_back(one_thread(ways[at], look_ups));
      const TwoThreads both = two_threads_undisturbed(ways[at], look_ups);
      if (both.undisturbed) together[at].push_back(both.ns);
    }
  }
  for (std::size_t i = 0; i < ways.size(); ++i) {
    figures[i].name = ways[i].name;
    figures[i].one_thread_ns = median(alone[i]);
    figures[i].undisturbed = together[i].size();
    if (together[i].empty()) continue;
    figures[i].two_threads_ns = median(together[i]);
    figures[i].two_threads_times = 2 * figures[i].one_thread_ns / figures[i].two_threads_ns;
  }
  return figures;
}

}  // namespace verbena::bench
