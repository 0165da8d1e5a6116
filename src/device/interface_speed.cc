#include "device/interface_speed.h"

#include <array>
#include <cstdlib>

#include <fcntl.h>
#include <unistd.h>

namespace verbena::device {

long interface_megabits(const std::string& interface) noexcept {
  const int fd = ::open(("/sys/class/net/" + interface + "/speed").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  std::array<char, 24> text{};
  const ssize_t length = ::read(fd, text.data(), text.size() - 1);
  ::close(fd);
  return length > 0 ? std::strtol(text.data(), nullptr, 10) : 0;
}

std::uint64_t interface_bits_per_second(const std::string& interface) noexcept {
  constexpr std::uint64_t kUntold = 10'000;
  constexpr std::uint64_t kBitsInMegabit = 1'000'000;
  const long megabits = interface_megabits(interface);
  return (megabits > 0 ? static_cast<std::uint64_t>(megabits) : kUntold) * kBitsInMegabit;
}

}  // namespace verbena::device
