// Memory behind a descriptor (memfd) that processes share. It is sealed against growing and shrinking before anybody
// else sees it, so that touching a page never faults, and it is not inherited by fork.
#pragma once

#include <cstddef>
#include <span>

#include "transport/fd.h"
#include "verbena/result.h"

namespace verbena::transport {

// A mapping that is undone with its owner.
class Mapping {
 public:
  Mapping() noexcept = default;
  explicit Mapping(std::span<std::byte> bytes) noexcept : bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  std::span<std::byte> bytes() const noexcept { return bytes_; }
  // In the child of a fork, where the mapping does not exist.
  void forget() noexcept { bytes_ = {}; }

 private:
  std::span<std::byte> bytes_;
};

struct SharedMemory {
  Fd fd;
  Mapping mapping;
};

enum class OthersMay { kWrite, kOnlyRead };

// Zeroed memory, all of it present. `name` is seen in /proc/<pid>/maps.
Result<SharedMemory> create_shared_memory(const char* name, std::size_t bytes, OthersMay others);

// Maps for reading and writing what another process made. kInvalidArgument where the descriptor is not sealed as
// create_shared_memory() seals, or not exactly `bytes` long.
Result<Mapping> map_shared_memory(int fd, std::size_t bytes);

}  // namespace verbena::transport
