// The text of a destination: whatever is read can be written, and is then read as the same.
#include <cstdint>
#include <string>
#include <string_view>

#include "require.h"
#include "verbena/resolve.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  const auto read = verbena::parse_destination(text);
  if (!read) {
    verbena::fuzz::require(!read.error().message.empty(), "a refusal says why");
    return 0;
  }
  const auto again = verbena::parse_destination(verbena::to_text(*read));
  verbena::fuzz::require(again && *again == *read, "what was written is read as the same");
  return 0;
}
