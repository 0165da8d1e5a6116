#include "device/memory_window.h"

namespace verbena::device {

Result<std::unique_ptr<MemoryWindow>> MemoryWindow::create(ProtectionDomain& domain, engine::WindowType type) {
  if (auto entered = domain.context().enter(ObjectKind::kMemoryWindow); !entered) {
    return tl::make_unexpected(entered.error());
  }
  std::unique_ptr<MemoryWindow> made(new MemoryWindow(domain, type));
  if (auto key = made->context_->add_window(made->window_); !key) return tl::make_unexpected(key.error());
  made->published_ = true;
  domain.engine().enter(engine::Resident::kMemoryWindow);
  return made;
}

MemoryWindow::~MemoryWindow() {
  context_->leave(ObjectKind::kMemoryWindow);
  if (!published_) return;
  context_->remove_window(window_);
  domain_.engine().leave(engine::Resident::kMemoryWindow);
}

}  // namespace verbena::device
