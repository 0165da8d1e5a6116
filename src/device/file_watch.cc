#include "device/file_watch.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include <sys/inotify.h>
#include <unistd.h>

#include "transport/system_error.h"

namespace verbena::device {

// The folder is watched: an editor writes another file and gives it the name.
Result<std::unique_ptr<FileWatch>> FileWatch::open(const std::string& path) {
  const auto slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  transport::Fd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify) return transport::system_failure("Cannot watch " + path);
  if (::inotify_add_watch(inotify.get(), folder.c_str(), IN_CLOSE_WRITE | IN_MOVED_TO) < 0) {
    return transport::system_failure("Cannot watch " + folder + ", the folder of " + path);
  }
  return std::unique_ptr<FileWatch>(
      new FileWatch(std::move(inotify), slash == std::string::npos ? path : path.substr(slash + 1)));
}

bool FileWatch::drain() noexcept {
  alignas(inotify_event) std::array<std::byte, 4096> buffer;
  bool changed = false;
  while (true) {
    const ssize_t length = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (length <= 0) return changed;
    for (std::size_t at = 0; at < static_cast<std::size_t>(length);) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const auto* const name = reinterpret_cast<const char*>(buffer.data() + at + sizeof event);
      changed |= (event.mask & IN_Q_OVERFLOW) != 0 || (event.len != 0 && name_ == std::string_view(name));
      at += sizeof event + event.len;
    }
  }
}

}  // namespace verbena::device
