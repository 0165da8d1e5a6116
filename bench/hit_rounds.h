// What one look-up costs, on one thread and on two at once, for several ways that are measured in turn.
//
// Rounds are short and interleaved, in another order each time, so that a busy moment hits all ways; the first round of
// each is thrown away. Times are processor time of the threads that look up. A round of two threads counts only where
// both had a processor for most of it: else they did not meet, and it is taken again, a few times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace verbena::bench {

struct HitWay {
  std::string name;
  // Makes `look_ups` of them on thread 0 or 1.
  std::function<void(std::size_t thread, std::uint64_t look_ups)> run;
};

struct HitFigure {
  std::string name;
  double one_thread_ns = 0;      // a look-up
  double two_threads_ns = 0;     // a look-up of each, while the other does the same; 0: no round counted
  double two_threads_times = 0;  // how many times the look-ups of one thread two make
  std::size_t undisturbed = 0;   // rounds of two threads that counted
};

std::vector<HitFigure> measure_hits(const std::vector<HitWay>& ways, std::size_t rounds, std::uint64_t look_ups);

// The middle one. Requires: !values.empty().
double median(std::vector<double> values);

}  // namespace verbena::bench
