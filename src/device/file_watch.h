// Tells when a file was written, or another one was put in its place (inotify).
//
// Thread-safety: one thread at a time.
// Ownership:     owns its descriptor.
#pragma once

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
  FileWatch(transport::Fd inotify, std::string name) noexcept : inotify_(std::move(inotify)), name_(std::move(name)) {}

  transport::Fd inotify_;
  const std::string name_;  // without its folder
};

}  // namespace verbena::device
