// Who brings in the memory of on-demand regions, which need not be there when they are registered.
#pragma once

#include <cstdint>

namespace verbena::engine {

// Thread-safety: the implementation's; called from any thread that sends or receives.
class Pager {
 public:
  // Whether the process may read (`write`: and write) all of these bytes now. Their pages are present then. It may
  // take as long as a page fault does.
  virtual bool page_in(std::uint64_t address, std::uint64_t length, bool write) noexcept = 0;

 protected:
  ~Pager() = default;
};

}  // namespace verbena::engine
