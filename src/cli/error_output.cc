#include "cli/error_output.h"

#include <cstdio>
#include <exception>
#include <string>

namespace verbena::cli {

void write_error(fmt::string_view format, fmt::format_args arguments) noexcept {
  try {
    const std::string text = fmt::vformat(format, arguments);
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  } catch (const std::exception&) {
    // No memory for the words, and nobody left to tell.
  }
}

}  // namespace verbena::cli
