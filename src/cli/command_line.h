// The tool as a function: reads the command line, does what it says.
#pragma once

namespace verbena::cli {

// Returns the exit code: 0, 1 where the work failed, 2 where the command line is wrong. Help goes to stdout, what is
// wrong to stderr. Does not return where `verbena run` replaced the process.
int run_command_line(int argc, const char* const* argv);

}  // namespace verbena::cli
