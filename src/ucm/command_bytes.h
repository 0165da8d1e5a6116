// Between the bytes of a command and its structure. A program may have been built with a shorter or longer structure
// than this one: what is common counts, the rest is zero.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "ucm/service.h"
#include "verbena/result.h"

namespace verbena::ucm {

// `least`: how many bytes it must have. EINVAL for fewer.
template <class Structure>
Result<Structure> read_command(const Command& command, std::size_t least = sizeof(Structure)) {
  if (command.bytes.size() < least) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("rdma_cm: a command of {} bytes, of which {} came", least, command.bytes.size()),
                   EINVAL);
  }
  Structure structure{};
  std::memcpy(&structure, command.bytes.data(), std::min(sizeof structure, command.bytes.size()));
  return structure;
}

// For those that must not have done their work where the answer then has no place.
inline Status has_room(const Command& command, std::size_t least) {
  if (command.room >= least) return {};
  return failure(ErrorCode::kInvalidArgument,
                 fmt::format("rdma_cm: room for {} bytes of an answer of {}", command.room, least), ENOSPC);
}

// `to`: an address of the program.
inline Status write_answer(const Command& command, std::uint64_t to, const void* answer, std::size_t size,
                           std::size_t least) {
  if (auto room = has_room(command, least); !room) return room;
  if (to == 0) return failure(ErrorCode::kInvalidArgument, "rdma_cm: no place for the answer", EFAULT);
  std::memcpy(reinterpret_cast<void*>(static_cast<std::uintptr_t>(to)), answer, std::min(command.room, size));
  return {};
}

template <class Structure>
Status write_answer(const Command& command, std::uint64_t to, const Structure& answer,
                    std::size_t least = sizeof(Structure)) {
  return write_answer(command, to, &answer, sizeof answer, least);
}

inline tl::unexpected<Error> wrong_stage(const char* call) {
  return failure(ErrorCode::kInvalidArgument, fmt::format("rdma_cm: {} does not fit what was done before", call),
                 EINVAL);
}

}  // namespace verbena::ucm
