// The installed libibverbs behind this library: where a call goes whose object is not ours.
//
// The library is opened by the absolute path that the build found, never by its bare name: under LD_LIBRARY_PATH that
// name is ours. A look-up on its handle sees it and what it needs, so it never comes back to us. Where it is missing,
// or too old to have a function, the program is answered as by a host without RDMA devices.
//
// Thread-safety: any thread; a function is looked up at its first use and remembered.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace verbena::verbs {

// Address of `name` at `version` in the real library, or null.
void* find_real(const char* name, const char* version) noexcept;

class RealAddress {
 public:
  constexpr RealAddress(const char* name, const char* version) noexcept : name_(name), version_(version) {}

  // Null where the real library does not have it.
  void* get() noexcept {
    // Two threads may both look it up; they find the same. Nothing else is published with it.
    void* found = found_.load(std::memory_order_relaxed);
    if (found != nullptr) return found == &missing_ ? nullptr : found;
    found = find_real(name_, version_);
    found_.store(found == nullptr ? &missing_ : found, std::memory_order_relaxed);
    return found;
  }

 private:
  static inline char missing_ = 0;

  const char* name_;
  const char* version_;
  std::atomic<void*> found_{nullptr};  // null: not yet looked up; &missing_: the real library does not have it
};

template <class Function>
class Real;

template <class R, class... Arguments>
class Real<R(Arguments...)> {
 public:
  constexpr Real(const char* name, const char* version) noexcept : address_(name, version) {}

  // Calls it; where it is missing, returns `otherwise` and sets errno to EOPNOTSUPP.
  // Not noexcept: a thread that is cancelled while it waits in there unwinds through here.
  R call_or(R otherwise, Arguments... arguments) {
    if (void* const real = address_.get()) return reinterpret_cast<R (*)(Arguments...)>(real)(arguments...);
    errno = EOPNOTSUPP;
    return otherwise;
  }

 private:
  RealAddress address_;
};

template <class... Arguments>
class Real<void(Arguments...)> {
 public:
  constexpr Real(const char* name, const char* version) noexcept : address_(name, version) {}

  // Does nothing where it is missing.
  void call(Arguments... arguments) {
    if (void* const real = address_.get()) reinterpret_cast<void (*)(Arguments...)>(real)(arguments...);
  }

 private:
  RealAddress address_;
};

}  // namespace verbena::verbs
