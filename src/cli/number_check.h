// What a number on the command line must be. As the parser's own checks, but what is no number (nan) is refused, and
// the words are for a person.
#pragma once

#include <CLI/CLI.hpp>

namespace verbena::cli {

// From `least` to `most`, both included.
CLI::Validator number_between(double least, double most);

// 1, 2, 3 ...; the option's type is to refuse what is too large for it.
CLI::Validator positive_whole_number();

}  // namespace verbena::cli
