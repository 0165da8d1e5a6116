#include "cli/descriptor_limit.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <fmt/format.h>

#include "cli/descriptor.h"
#include "rdma/verbs_error.h"

namespace verbena::cli {
namespace {

// What a look for devices has open at once, and a little more.
constexpr std::size_t kForDeviceList = 4;

// The errno where so many are not left.
std::optional<int> shortage_for_device_list() {
  std::array<Descriptor, kForDeviceList> files;
  for (Descriptor& file : files) {
    file = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (const int number = errno; !file && is_descriptor_shortage(number)) return number;
  }
  return std::nullopt;
}

}  // namespace

bool is_descriptor_shortage(int number) noexcept {
  return number == EMFILE || number == ENFILE;
}

Error descriptor_shortage(std::string_view what, int number) {
  const std::string advice = number == EMFILE ? rdma::files_in_words() : "the limit is that of the host (fs.file-max)";
  return {ErrorCode::kExhausted, number, fmt::format("{}: {}; {}", what, std::strerror(number), advice)};
}

Result<DeviceList> read_device_list() {
  auto list = DeviceList::read();
  if (list && !list->empty()) return list;
  if (const auto number = shortage_for_device_list()) {
    return tl::make_unexpected(descriptor_shortage("cannot look for devices", *number));
  }
  return list;
}

}  // namespace verbena::cli
