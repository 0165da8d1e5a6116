// Memory of the device, as a program takes a piece of it: here, memory of the process that no pointer is handed out to.
// A packet between two regions of it behaves as between two regions of the program's.
//
// Thread-safety: all calls from any thread; who copies in while a packet is copied out gets what he gets.
// Ownership:     shared by the program's object and the regions in it. Keeps the context alive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "device/context.h"
#include "verbena/result.h"

namespace verbena::device {

class DeviceMemory {
 public:
  // Zeros. EINVAL for no bytes or an alignment above 4096; ENOMEM where the device has not as much left.
  static Result<std::shared_ptr<DeviceMemory>> create(Context& context, std::uint64_t length,
                                                      std::uint32_t log_alignment);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  Context& context() noexcept { return *context_; }
  std::uint32_t handle() const noexcept { return handle_; }
  std::uint64_t length() const noexcept { return length_; }
  std::uint64_t address() const noexcept { return reinterpret_cast<std::uint64_t>(bytes_.get()); }
  bool covers(std::uint64_t offset, std::uint64_t length) const noexcept {
    return offset <= length_ && length <= length_ - offset;
  }
  // 0, EFAULT beyond the end, or EINVAL where offset or length is no multiple of 4: as on hardware, and a program that
  // has not seen it here would see it there.
  int copy_in(std::uint64_t offset, const void* from, std::size_t length) noexcept;
  int copy_out(void* to, std::uint64_t offset, std::size_t length) const noexcept;

 private:
  int check(std::uint64_t offset, std::uint64_t length) const noexcept;
  struct Free {
    void operator()(std::byte* bytes) const noexcept;
  };
  DeviceMemory(Context& context, std::byte* bytes, std::uint64_t length)
      : context_(context.shared_from_this()), bytes_(bytes), length_(length), handle_(context.next_handle()) {}

  const std::shared_ptr<Context> context_;
  const std::unique_ptr<std::byte, Free> bytes_;
  const std::uint64_t length_;
  const std::uint32_t handle_;
};

}  // namespace verbena::device
