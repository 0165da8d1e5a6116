// A memory window of a context: the engine's, with its place in the memory table.
//
// Thread-safety: all calls from any thread; destruction needs that nobody else uses it.
// Ownership:     keeps the context alive; the domain must outlive it.
#pragma once

#include <cstdint>
#include <memory>

#include "device/protection_domain.h"
#include "engine/memory_window.h"

namespace verbena::device {

class MemoryWindow {
 public:
  // ENOMEM at the limit.
  static Result<std::unique_ptr<MemoryWindow>> create(ProtectionDomain& domain, engine::WindowType type);
  // Whatever it was bound to is no longer reached through it.
  ~MemoryWindow();
  MemoryWindow(const MemoryWindow&) = delete;
  MemoryWindow& operator=(const MemoryWindow&) = delete;

  Context& context() noexcept { return *context_; }
  std::uint32_t handle() const noexcept { return handle_; }
  engine::WindowType type() const noexcept { return window_.type(); }
  MemoryKey key() const noexcept { return window_.key(); }

 private:
  MemoryWindow(ProtectionDomain& domain, engine::WindowType type)
      : context_(domain.context().shared_from_this()),
        domain_(domain),
        window_(domain.engine(), type),
        handle_(context_->next_handle()) {}

  const std::shared_ptr<Context> context_;
  ProtectionDomain& domain_;
  engine::MemoryWindow window_;
  bool published_ = false;
  const std::uint32_t handle_;
};

}  // namespace verbena::device
