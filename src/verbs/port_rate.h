// The speed of a network interface in the terms of an InfiniBand port: so many lanes at such a rate.
#pragma once

#include <cstdint>

namespace verbena::verbs {

struct PortRate {
  std::uint8_t width = 1;                   // as in ibv_port_attr: 1 for one lane, 2 for four
  std::uint8_t speed = 4;                   // 1 SDR, 4 QDR, 32 EDR, 64 HDR, 128 NDR
  const char* text = "10 Gb/sec (1X QDR)";  // as sysfs writes it
};

// The largest that `megabits` a second fill; 10 Gb/s for an interface that does not tell.
PortRate port_rate(long megabits) noexcept;

}  // namespace verbena::verbs
