#include "verbs/real.h"

#include <dlfcn.h>

namespace verbena::verbs {
namespace {

// Kept open for the life of the process: our exports may be called until its last moment.
void* open_real() noexcept {
  return ::dlopen(VERBENA_REAL_LIBIBVERBS, RTLD_LAZY | RTLD_LOCAL);
}

}  // namespace

void* find_real(const char* name, const char* version) noexcept {
  static void* const handle = open_real();
  return handle == nullptr ? nullptr : ::dlvsym(handle, name, version);
}

}  // namespace verbena::verbs
