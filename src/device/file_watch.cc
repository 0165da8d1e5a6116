#include "device/file_watch.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/system_error.h"

namespace verbena::device {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kEvents =
    IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_MOVE_SELF | IN_DELETE_SELF;
constexpr int kMostLinks = 40;  // as the kernel follows

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace

Result<std::unique_ptr<FileWatch>> FileWatch::open(const std::string& path) {
  transport::Fd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify) return transport::system_failure("Cannot watch " + path);
  std::unique_ptr<FileWatch> made(new FileWatch(std::move(inotify), path));
  if (!made->follow_links()) {
    return transport::system_failure("Cannot watch " + folder_of(path).string() + ", the folder of " + path);
  }
  made->last_ = made->identify();
  return made;
}

FileWatch::Identity FileWatch::identify() const noexcept {
  struct stat now {};
  if (::stat(path_.c_str(), &now) != 0) return {};
  return {.device = now.st_dev, .inode = now.st_ino};
}

// Made by linking it, which nobody writes.
bool FileWatch::is_link() const noexcept {
  struct stat now {};
  return ::lstat(file_.c_str(), &now) == 0 && (S_ISLNK(now.st_mode) || now.st_nlink > 1);
}

bool FileWatch::watch(const std::string& folder, std::map<std::string, int>& watched) {
  const int number = ::inotify_add_watch(inotify_.get(), folder.c_str(), kEvents);
  if (number >= 0) watched.emplace(folder, number);
  return number >= 0;
}

// Each part of the path that is a link leads on to the rest of the path behind its target.
bool FileWatch::follow_links() {
  std::map<std::string, int> watched;
  if (!watch(folder_of(path_).string(), watched)) return false;
  fs::path rest = path_;
  int links = 0;
  for (bool again = true; again && links < kMostLinks;) {
    again = false;
    fs::path walked;
    for (auto part = rest.begin(); part != rest.end(); ++part) {
      const fs::path folder = walked.empty() ? fs::path(".") : walked;
      walked /= *part;
      std::error_code error;
      const fs::path target = fs::read_symlink(walked, error);
      if (error) continue;
      watch(folder.string(), watched);
      fs::path next = target.is_absolute() ? target : (folder / target);
      while (++part != rest.end()) next /= *part;
      rest = next;
      ++links;
      again = true;
      break;
    }
  }
  const std::string folder = folder_of(rest).string();
  folder_ = watch(folder, watched) ? watched[folder] : -1;
  file_ = rest.string();
  name_ = rest.filename().string();
  for (const auto& [before, number] : folders_) {
    const bool used =
        std::any_of(watched.begin(), watched.end(), [&](const auto& one) { return one.second == number; });
    if (!used) ::inotify_rm_watch(inotify_.get(), number);
  }
  folders_ = std::move(watched);
  return true;
}

FileWatch::Events FileWatch::read_events() noexcept {
  alignas(inotify_event) std::array<std::byte, 4096> buffer;
  Events events;
  while (true) {
    const ssize_t length = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (length <= 0) return events;
    events.any = true;
    for (std::size_t at = 0; at < static_cast<std::size_t>(length);) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const auto* const name = reinterpret_cast<const char*>(buffer.data() + at + sizeof event);
      const bool is_file = event.wd == folder_ && event.len != 0 && name_ == std::string_view(name);
      if (is_file && (event.mask & IN_CREATE) != 0) (is_link() ? events.written : events.being_written) = true;
      if ((is_file && (event.mask & (IN_CLOSE_WRITE | IN_MOVED_TO)) != 0) || (event.mask & IN_Q_OVERFLOW) != 0) {
        events.written = true;
        events.being_written = false;
      }
      at += sizeof event + event.len;
    }
  }
}

bool FileWatch::drain() noexcept {
  const Events events = read_events();
  if (!events.any || events.being_written) return false;
  try {
    follow_links();
  } catch (const std::exception&) {
    return true;  // no memory to find out
  }
  const Identity now = identify();
  const bool other = now != Identity{} && now != last_;  // gone for a moment is no change
  if (other) last_ = now;
  return other || events.written;
}

}  // namespace verbena::device
