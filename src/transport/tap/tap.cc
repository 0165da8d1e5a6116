#include "transport/tap/tap.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/no_cancel.h"
#include "transport/no_file_size_signal.h"
#include "transport/system_error.h"
#include "transport/tap/pcapng.h"

namespace verbena::transport {
namespace {

// Each block ends with its length, which also stands behind its type. A file that was cut, or that a full disk cut,
// ends otherwise, and what is appended to it no reader finds.
bool ends_with_a_whole_block(const Fd& file, std::size_t head_size) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return false;
  std::uint32_t length = 0;
  std::uint32_t said = 0;
  const off_t end = status.st_size;
  if (::pread(file.get(), &length, sizeof length, end - 4) != sizeof length) return false;
  if (length < 12 || length % 4 != 0 || length > std::max(pcapng::kMaxBlock, head_size) || length > end) return false;
  return ::pread(file.get(), &said, sizeof said, end - length + 4) == sizeof said && said == length;
}

// Another process may be in the middle of writing a block.
bool is_whole(const Fd& file, std::size_t head_size) {
  constexpr int kLooks = 20;
  for (int look = 0; look < kLooks; ++look) {
    if (ends_with_a_whole_block(file, head_size)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

// Writes the head into an empty file, or makes sure that there is one. Requires: the file is locked.
Status begin_file(const Fd& file, const std::string& path) {
  const auto head = pcapng::file_head();
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_failure("Cannot look at " + path);
  if (!S_ISREG(status.st_mode) || status.st_size == 0) {
    if (::write(file.get(), head.data(), head.size()) == static_cast<ssize_t>(head.size())) return {};
    return system_failure("Cannot write to " + path);
  }
  std::vector<std::byte> found(head.size());
  const bool is_ours =
      ::pread(file.get(), found.data(), found.size(), 0) == static_cast<ssize_t>(found.size()) && found == head;
  if (is_ours && is_whole(file, head.size())) return {};
  if (is_ours) {
    return failure(ErrorCode::kInvalidArgument, path +
                                                    " is a recording that was cut: its last packet is not whole, and "
                                                    "what follows could not be read. Remove it, or name another file.");
  }
  return failure(ErrorCode::kInvalidArgument,
                 path + " is there already and is not a recording of Verbena's. Remove it, or name another file.");
}

}  // namespace

Result<std::unique_ptr<Tap>> Tap::open(const std::string& path, DropCounter& log) {
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644));
  if (!file) return system_failure("Cannot open " + path + " to record packets");
  const NoFileSizeSignal no_signal;
  ::flock(file.get(), LOCK_EX);  // fails on what cannot be locked; then only one process writes to it
  const auto begun = begin_file(file, path);
  ::flock(file.get(), LOCK_UN);
  if (!begun) return tl::make_unexpected(begun.error());
  return std::unique_ptr<Tap>(new Tap(std::move(file), log));
}

Status Tap::check(const std::string& path) {
  class Silent final : public DropCounter {
    void count(Drop /*drop*/, std::uint64_t /*how_many*/) noexcept override {}
    void explain(std::string_view /*sentence*/) noexcept override {}
  } silent;
  struct stat status {};
  const bool there = ::stat(path.c_str(), &status) == 0;
  if (!there || S_ISREG(status.st_mode)) {
    auto opened = open(path, silent);
    if (!opened) return tl::make_unexpected(opened.error());
    return {};
  }
  errno = EISDIR;
  if (!S_ISDIR(status.st_mode) && ::access(path.c_str(), R_OK | W_OK) == 0) return {};
  return system_failure("Cannot open " + path + " to record packets");
}

void Tap::write(Direction direction, ConstBytes network_header, std::span<const ConstBytes> parts,
                std::int64_t wall_clock_ns) noexcept {
  if (failed_.load(std::memory_order_relaxed)) return;
  std::array<std::byte, pcapng::kMaxBlock> block;
  const pcapng::Packet packet{
      .time_ns = wall_clock_ns, .flags = static_cast<std::uint32_t>(direction), .head = network_header, .parts = parts};
  const auto size = pcapng::write_packet(packet, block);
  const NoCancel guard;
  const NoFileSizeSignal no_signal;
  const ssize_t written = ::write(file_.get(), block.data(), size);
  if (written == static_cast<ssize_t>(size)) return;
  // Where only a part was taken, the rest is refused with the reason.
  const std::span rest = std::span(block).first(size).subspan(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  if (written > 0 && ::write(file_.get(), rest.data(), rest.size()) == static_cast<ssize_t>(rest.size())) return;
  const int error = errno;
  if (failed_.exchange(true, std::memory_order_relaxed)) return;
  log_.explain("Recording packets has stopped, the file took no more: " + std::generic_category().message(error) + ".");
}

}  // namespace verbena::transport
