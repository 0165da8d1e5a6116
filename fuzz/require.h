// How a fuzz target says that it found something.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace verbena::fuzz {

// Ends the program, so that the fuzzer keeps the input, where what must hold does not.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

}  // namespace verbena::fuzz
