#include "transport/shm/inbound.h"

#include <sys/socket.h>

#include "transport/system_error.h"

namespace verbena::transport {

Result<std::shared_ptr<Inbound>> Inbound::open(const host::Hello& hello, const Fd& ring, Fd doorbell, int epoll) {
  if (hello.memory_bytes <= host::kRingHeaderBytes ||
      !host::is_ring_capacity(hello.memory_bytes - host::kRingHeaderBytes)) {
    return failure(ErrorCode::kInvalidArgument, "Another process announced a ring of an impossible size.");
  }
  auto mapping = map_shared_memory(ring.get(), hello.memory_bytes);
  if (!mapping) return tl::make_unexpected(mapping.error());
  if (!host::is_ring(mapping->bytes())) {
    return failure(ErrorCode::kInvalidArgument, "The memory of another process is no ring of this version.");
  }
  if (!watch_doorbell(epoll, doorbell.get(), {WatchKind::kDoorbell, 0})) {
    return system_failure("Cannot watch the doorbell of another process");
  }
  return std::shared_ptr<Inbound>(new Inbound(std::move(*mapping), std::move(doorbell), epoll));
}

void Inbound::hang_up() noexcept {
  ::shutdown(connection_.get(), SHUT_RDWR);
}

Inbound::~Inbound() {
  unwatch(epoll_, doorbell_.get());
}

}  // namespace verbena::transport
