// The place in a program's source that made a call: what std::source_location is, which not every compiler has.
#pragma once

#include <cstdint>

namespace verbena {

// As the defaulted argument of a function, CallSite::current() is the place of the call to that function.
//
// Thread-safety: a plain value.
// Ownership:     points to strings that last as long as the code that made the call.
class CallSite {
 public:
  constexpr CallSite() noexcept = default;
  static constexpr CallSite current(const char* file = __builtin_FILE(), const char* function = __builtin_FUNCTION(),
                                    std::uint32_t line = __builtin_LINE()) noexcept {
    CallSite site;
    site.file_ = file;
    site.function_ = function;
    site.line_ = line;
    return site;
  }

  // 0 where none was given.
  constexpr std::uint32_t line() const noexcept { return line_; }
  constexpr const char* file_name() const noexcept { return file_; }
  constexpr const char* function_name() const noexcept { return function_; }

 private:
  const char* file_ = "";
  const char* function_ = "";
  std::uint32_t line_ = 0;
};

}  // namespace verbena
