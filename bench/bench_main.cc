// The main program of every benchmark: google-benchmark's own, and `--smoke`, which runs each benchmark for the
// shortest time, to see that it works and not how fast.
#include <cstring>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

int main(int argc, char** argv) {
  std::string shortest = "--benchmark_min_time=0.0001";
  std::vector<char*> arguments(argv, argv + argc);
  for (char*& argument : arguments) {
    if (std::strcmp(argument, "--smoke") == 0) argument = shortest.data();
  }
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 2;
  return benchmark::RunSpecifiedBenchmarks() == 0 ? 1 : 0;
}
