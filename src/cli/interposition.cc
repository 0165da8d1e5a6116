#include "cli/interposition.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace verbena::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLibrary = "libverbena-rnic.so.0";
constexpr std::string_view kDropInLibrary = "libibverbs.so.1";

// The words of a list that the dynamic linker splits at any character of `separators`.
std::vector<std::string_view> split(std::string_view list, std::string_view separators) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(separators), list.size());
    if (end > 0) words.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return words;
}

std::string_view file_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// A sanitizer's runtime refuses to start unless it comes first.
bool is_sanitizer(std::string_view library) {
  constexpr std::array<std::string_view, 5> kRuntimes{"libasan.", "libtsan.", "libubsan.", "liblsan.", "libclang_rt."};
  const std::string_view name = file_name(library);
  return std::any_of(kRuntimes.begin(), kRuntimes.end(),
                     [&](std::string_view runtime) { return name.substr(0, runtime.size()) == runtime; });
}

Result<Interposition> in_directory(const fs::path& directory) {
  Interposition found{directory / kLibrary, directory / "verbena" / "dropin", VERBENA_SANITIZER_RUNTIME};
  std::error_code ignored;
  if (!fs::exists(found.drop_in / kDropInLibrary, ignored)) {
    return failure(ErrorCode::kNotFound,
                   fmt::format("{} is there but its drop-in {} is not: install Verbena again", found.library.string(),
                               (found.drop_in / kDropInLibrary).string()));
  }
  if (directory.string().find_first_of(" :") != std::string::npos) {
    return failure(
        ErrorCode::kInvalidArgument,
        fmt::format("the dynamic linker cannot take a path with a space or a colon: {}", directory.string()));
  }
  return found;
}

}  // namespace

fs::path installed_library_directory() {
  return fs::path(VERBENA_BINARY_TO_LIBRARY);
}

Result<Interposition> find_interposition(const fs::path& tool) {
  const fs::path here = tool.parent_path();
  std::vector<std::string> looked_in;
  for (const fs::path& relative : {fs::path("../lib"), installed_library_directory()}) {
    const fs::path directory = (here / relative).lexically_normal();
    std::error_code ignored;
    if (fs::exists(directory / kLibrary, ignored)) return in_directory(directory);
    looked_in.push_back(directory.string());
  }
  return failure(ErrorCode::kNotFound,
                 fmt::format("cannot find {}; looked in {}", kLibrary, fmt::join(looked_in, ", ")));
}

std::string compose_preload(const Interposition& interposition, std::string_view current) {
  std::vector<std::string_view> first;
  std::vector<std::string_view> rest;
  for (const std::string_view library : split(current, " :")) {
    if (file_name(library) == kLibrary) continue;
    (is_sanitizer(library) ? first : rest).push_back(library);
  }
  if (first.empty() && !interposition.sanitizer.empty()) first.push_back(interposition.sanitizer);
  const std::string library = interposition.library.string();
  first.push_back(library);
  first.insert(first.end(), rest.begin(), rest.end());
  return fmt::format("{}", fmt::join(first, ":"));
}

std::string compose_library_path(const Interposition& interposition, std::string_view current) {
  const std::string drop_in = interposition.drop_in.string();
  std::vector<std::string_view> directories{drop_in};
  for (const std::string_view directory : split(current, ":;")) {
    if (directory != drop_in) directories.push_back(directory);
  }
  return fmt::format("{}", fmt::join(directories, ":"));
}

}  // namespace verbena::cli
