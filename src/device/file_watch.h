// Tells when a file was written, or another one was put in its place (inotify). The folder is watched, since an editor
// writes another file and gives it the name. Where the path leads through symbolic links, as in a mounted ConfigMap,
// the folder of the file itself is watched as well, and that of each link on the way; when anything happens there, and
// the path leads to another file than before, that is a change, too.
//
// Thread-safety: one thread at a time.
// Ownership:     owns its descriptor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "transport/fd.h"
#include "verbena/result.h"

namespace verbena::device {

class FileWatch {
 public:
  // The folder of the file must exist.
  static Result<std::unique_ptr<FileWatch>> open(const std::string& path);

  // Readable when drain() has something to say.
  int fd() const noexcept { return inotify_.get(); }
  // Whether the file changed since the last call.
  bool drain() noexcept;

  void abandon() noexcept { inotify_.reset(); }  // in the child of a fork

 private:
  // Which file the path leads to; all zero where to none.
  struct Identity {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    friend bool operator==(const Identity&, const Identity&) noexcept = default;
  };
  struct Events {
    bool any = false;
    bool written = false;        // the file was, or another one was put in its place
    bool being_written = false;  // it is new, and its writer has not closed it
  };

  FileWatch(transport::Fd inotify, std::string path) noexcept : inotify_(std::move(inotify)), path_(std::move(path)) {}
  Identity identify() const noexcept;
  bool is_link() const noexcept;
  Events read_events() noexcept;
  // Adds what the path leads through now, and drops what it does not any more. False where its own folder cannot be
  // watched.
  bool follow_links();
  bool watch(const std::string& folder, std::map<std::string, int>& watched);

  transport::Fd inotify_;
  const std::string path_;
  std::map<std::string, int> folders_;  // that are watched, with the kernel's number for each
  // The file itself behind all links, in its folder.
  int folder_ = -1;
  std::string file_;  // where the links lead to: the folder's, and this
  std::string name_;
  Identity last_;
};

}  // namespace verbena::device
