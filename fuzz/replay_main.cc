// Stands in for libFuzzer where the compiler has none: runs the target over each file of the corpus and then, up to
// -runs=N executions, over seeded mutations of them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

constexpr std::uint64_t kSeed = 1;

Input read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return {bytes.begin(), bytes.end()};
}

void add_inputs(const std::filesystem::path& path, std::vector<Input>& inputs) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path)) files.push_back(entry.path());
  } else {
    files.push_back(path);
  }
  std::sort(files.begin(), files.end());  // the order of a folder is not the same everywhere
  for (const auto& file : files) inputs.push_back(read_file(file));
}

// One small change: a bit, a byte, shorter, longer, or the tail of another input.
Input mutated(Input input, const std::vector<Input>& others, std::mt19937_64& random) {
  for (std::uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
    const std::size_t at = input.empty() ? 0 : random() % input.size();
    switch (random() % 5) {
      case 0:
        if (!input.empty()) input[at] = static_cast<std::uint8_t>(input[at] ^ (1U << (random() % 8)));
        break;
      case 1:
        if (!input.empty()) input[at] = static_cast<std::uint8_t>(random());
        break;
      case 2:
        input.resize(at);
        break;
      case 3:
        input.resize(input.size() + random() % 16, static_cast<std::uint8_t>(random()));
        break;
      default: {
        const Input& other = others[random() % others.size()];
        input.resize(at);
        if (at < other.size()) input.insert(input.end(), other.begin() + static_cast<std::ptrdiff_t>(at), other.end());
      }
    }
  }
  return input;
}

// Runs the target on a copy of exactly that size, so that a sanitizer sees a read past the end.
void run(const Input& input) {
  const Input exact(input);
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Input> inputs;
  std::uint64_t runs = 0;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "-runs=", 6) == 0) {
      runs = std::strtoull(argv[i] + 6, nullptr, 10);
    } else if (argv[i][0] != '-') {
      add_inputs(argv[i], inputs);
    }
  }
  if (inputs.empty()) {
    std::fprintf(stderr, "usage: %s [-runs=N] FILE-OR-FOLDER...\n", argv[0]);
    return 2;
  }
  for (const Input& input : inputs) run(input);
  std::mt19937_64 random(kSeed);
  for (std::uint64_t done = inputs.size(); done < runs; ++done) {
    run(mutated(inputs[random() % inputs.size()], inputs, random));
  }
  std::printf("%llu executions, seed %llu\n",
              static_cast<unsigned long long>(std::max<std::uint64_t>(runs, inputs.size())),
              static_cast<unsigned long long>(kSeed));
  return 0;
}
