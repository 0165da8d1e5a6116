// The option --device NAME[/PORT], as every subcommand has it that sends or answers.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "cli/port_name.h"

namespace verbena::cli {

// `port` must live as long as the subcommand. What is no name of a port is refused as usage.
void add_port_option(CLI::App& subcommand, PortName& port, const std::string& description);

}  // namespace verbena::cli
