// What the tool says on stderr.
#pragma once

#include <fmt/format.h>

namespace verbena::cli {

// As fmt::print(stderr, ...), but nothing escapes: where stderr is closed or full the words are lost, and the exit
// status alone tells.
void write_error(fmt::string_view format, fmt::format_args arguments) noexcept;

template <class... Arguments>
void print_error(fmt::format_string<Arguments...> format, Arguments&&... arguments) noexcept {
  write_error(format, fmt::make_format_args(arguments...));
}

}  // namespace verbena::cli
