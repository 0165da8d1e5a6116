#include "verbena/memory_region.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "rdma/verbs_error.h"

namespace verbena {

namespace {

constexpr std::size_t kSlotAlignment = 64;
constexpr std::size_t kPage = 4096;  // whole pages: no neighbour shares one, whatever fork does to them

constexpr std::size_t round_up(std::size_t value, std::size_t to) {
  return (value + to - 1) / to * to;
}

std::shared_ptr<std::byte[]> allocate_pages(std::size_t bytes) {
  auto* memory = static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{kPage}, std::nothrow));
  if (memory == nullptr) return {};
  std::memset(memory, 0, bytes);
  return {memory, [](std::byte* at) { ::operator delete[](at, std::align_val_t{kPage}); }};
}

}  // namespace

Result<MemoryRegion> MemoryRegion::create(const ProtectionDomain& domain, std::span<std::byte> memory, int access,
                                          CallSite place) {
  if (!domain) return failure(ErrorCode::kInvalidArgument, "a memory region needs a protection domain");
  ibv_mr* region = ibv_reg_mr(domain.get(), memory.data(), memory.size(), access);
  if (region == nullptr) {
    const int code = errno;
    std::string advice;
    if (code == ENOMEM || code == EAGAIN) {
      advice = fmt::format("this process may lock {} of memory: raise it (ulimit -l, or memlock in the container)",
                           rdma::memlock_in_words());
    }
    return rdma::verbs_failure("ibv_reg_mr", fmt::format("of {} bytes with access {:#x}", memory.size(), access), code,
                               advice);
  }
  auto object = std::make_shared<VerbsObject<ibv_mr>>(region, ibv_dereg_mr, "ibv_dereg_mr",
                                                      fmt::format("memory region of {} bytes", memory.size()),
                                                      std::vector<Keeper>{domain.keeper()});
  object->note_alive(place, domain.get());
  return MemoryRegion(std::move(object));
}

Result<DatagramBuffers> DatagramBuffers::create(const ProtectionDomain& domain, std::size_t slots,
                                                std::size_t payload_bytes, CallSite place) {
  DatagramBuffers buffers;
  buffers.slots_ = slots;
  buffers.payload_bytes_ = payload_bytes;
  buffers.stride_ = round_up(kGrhBytes + payload_bytes, kSlotAlignment);
  const std::size_t bytes = round_up(std::max<std::size_t>(slots, 1) * buffers.stride_, kPage);
  buffers.memory_ = allocate_pages(bytes);
  if (!buffers.memory_) {
    return failure(ErrorCode::kExhausted, fmt::format("no memory for {} datagrams of {} bytes", slots, payload_bytes),
                   ENOMEM);
  }
  Result<MemoryRegion> region =
      MemoryRegion::create(domain, {buffers.memory_.get(), bytes}, IBV_ACCESS_LOCAL_WRITE, place);
  if (!region) return tl::make_unexpected(region.error());
  buffers.region_ = std::move(*region);
  return buffers;
}

std::span<const std::byte> DatagramBuffers::received(std::size_t index, std::uint32_t byte_len) const noexcept {
  if (byte_len < kGrhBytes) return {};
  return {at(index) + kGrhBytes, std::min<std::size_t>(byte_len - kGrhBytes, payload_bytes_)};
}

ibv_sge DatagramBuffers::receive_sge(std::size_t index) noexcept {
  std::memset(at(index), 0, kGrhBytes);
  return {.addr = reinterpret_cast<std::uintptr_t>(at(index)),
          .length = static_cast<std::uint32_t>(kGrhBytes + payload_bytes_),
          .lkey = region_.lkey()};
}

ibv_sge DatagramBuffers::send_sge(std::size_t index, std::size_t bytes) const noexcept {
  return {.addr = reinterpret_cast<std::uintptr_t>(at(index) + kGrhBytes),
          .length = static_cast<std::uint32_t>(bytes),
          .lkey = region_.lkey()};
}

}  // namespace verbena
