#include "device/privilege.h"

#include <array>

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace verbena::device {

namespace {

bool has_capability(unsigned capability) noexcept {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  if (syscall(SYS_capget, &header, data.data()) != 0) return false;
  return (data[0].effective & (1U << capability)) != 0;
}

}  // namespace

bool may_use_raw_network() noexcept {
  return has_capability(CAP_NET_RAW);
}

bool may_lock_memory() noexcept {
  return has_capability(CAP_IPC_LOCK);
}

}  // namespace verbena::device
