// What all owning types over verbs objects share: one owner, and parents that outlive their children.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "verbena/export.h"
#include "verbena/live_objects.h"
#include "verbena/result.h"

namespace verbena {

// Keeps a verbs object, or a parent of one, alive.
using Keeper = std::shared_ptr<void>;

namespace detail {

// The error for a verbs call that destroys `what` and returned `code`.
VERBENA_API Error release_error(const char* call, const std::string& what, int code);
VERBENA_API void report_release_failure(const Error& error) noexcept;

}  // namespace detail

// One verbs object with the call that destroys it and the parents it needs until then.
//
// Thread-safety: as the verbs object; release() by one thread, when no other uses it.
// Ownership:     owns the verbs object; keeps its parents alive.
// Errors:        release() returns what the verbs call said and keeps the object where it failed, so that it can be
//                tried again; the destructor reports it (release_failure.h).
template <class Raw>
class VerbsObject {
 public:
  using Release = int (*)(Raw*);

  VerbsObject(Raw* raw, Release destroy, const char* call, std::string what, std::vector<Keeper> parents)
      : raw_(raw), release_(destroy), call_(call), what_(std::move(what)), parents_(std::move(parents)) {}
  VerbsObject(const VerbsObject&) = delete;
  VerbsObject& operator=(const VerbsObject&) = delete;
  ~VerbsObject() {
    if (Status status = release(); !status) {
      detail::note_left_behind(this);
      detail::report_release_failure(status.error());
    }
  }

  Raw* get() const noexcept { return raw_; }
  const std::string& what() const noexcept { return what_; }

  Status release() {
    if (raw_ == nullptr) return {};
    if (const int code = release_(raw_); code != 0) {
      return tl::make_unexpected(detail::release_error(call_, detail::with_place(this, what_), code));
    }
    detail::note_gone(this);
    raw_ = nullptr;
    parents_.clear();
    return {};
  }

  // Lists it in live_objects() until it is released.
  void note_alive(const CallSite& place, const ibv_pd* domain) const { detail::note_alive(this, what_, place, domain); }

 private:
  Raw* raw_;
  Release release_;
  const char* call_;
  std::string what_;
  std::vector<Keeper> parents_;
};

// The base of the owning types: move-only, empty after a move or a successful close().
template <class Raw>
class VerbsOwner {
 public:
  VerbsOwner() = default;
  VerbsOwner(VerbsOwner&&) noexcept = default;
  VerbsOwner& operator=(VerbsOwner&&) noexcept = default;

  // nullptr where empty.
  Raw* get() const noexcept { return object_ ? object_->get() : nullptr; }
  explicit operator bool() const noexcept { return get() != nullptr; }
  // For the children, which keep it alive.
  Keeper keeper() const noexcept { return object_; }

  // Destroys the verbs object now. kBusy, and nothing destroyed, while a child made from this object lives, or while
  // the device says EBUSY (something made from it without Verbena).
  Status close() {
    if (!object_) return {};
    if (object_.use_count() > 1) {
      return failure(ErrorCode::kBusy, object_->what() + " is still used by " +
                                           std::to_string(object_.use_count() - 1) +
                                           " object(s) made from it: close those first");
    }
    if (Status status = object_->release(); !status) return status;
    object_.reset();
    return {};
  }

 protected:
  explicit VerbsOwner(std::shared_ptr<VerbsObject<Raw>> object) : object_(std::move(object)) {}
  ~VerbsOwner() = default;

  std::shared_ptr<VerbsObject<Raw>> object_;
};

}  // namespace verbena
