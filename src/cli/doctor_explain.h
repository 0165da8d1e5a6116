// `verbena doctor explain`: what an error of a verbs call, a completion or an event means, and what to do.
#pragma once

#include "cli/subcommands.h"

namespace verbena::cli {

void add_doctor_explain(CLI::App& doctor, Request& request);

}  // namespace verbena::cli
