// How a program that knows nothing of Verbena is made to find the software RNIC: its library goes in front of
// libibverbs by LD_PRELOAD, and a directory with a drop-in libibverbs.so.1 goes in front of LD_LIBRARY_PATH for
// programs that call dlopen().
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "cli/device_settings.h"
#include "verbena/result.h"

namespace verbena::cli {

struct Interposition {
  std::filesystem::path library;  // libverbena-rnic.so.0
  std::filesystem::path drop_in;  // the directory that holds libibverbs.so.1
  std::string sanitizer;          // the runtime that must be loaded before `library`; empty in an ordinary build
};

// Looks in ../lib beside the tool's directory (the build tree), then in the directory of libraries as installed.
//
// Errors: kNotFound names what is missing and where it was looked for; kInvalidArgument where the path has a space or
//         a colon, for the dynamic linker takes both as separators.
Result<Interposition> find_interposition(const std::filesystem::path& tool);

// The directory, relative to the tool's, in which `make install` puts libraries.
std::filesystem::path installed_library_directory();

// `library` in front of what LD_PRELOAD holds already, except that a sanitizer's runtime stays first, and one is put
// first where Verbena itself is built with it. An entry for `library` that is there already is not repeated.
std::string compose_preload(const Interposition& interposition, std::string_view current);

// `drop_in` in front of what LD_LIBRARY_PATH holds already.
std::string compose_library_path(const Interposition& interposition, std::string_view current);

}  // namespace verbena::cli
