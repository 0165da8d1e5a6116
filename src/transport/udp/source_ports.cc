#include "transport/udp/source_ports.h"

#include "transport/udp/udp_socket.h"

namespace verbena::transport {

std::uint16_t SourcePorts::reserve(std::uint16_t wanted) noexcept {
  if (wanted == kRocePort) return kRocePort;
  const unsigned offset = wanted & (0xffffU - kFirst);
  if (const auto known = answers_[offset].load(std::memory_order_acquire); known != 0) return known;
  const std::lock_guard lock(mutex_);
  const auto answer = bind_near(offset);
  answers_[offset].store(answer, std::memory_order_release);  // behind the socket that bind_near() made
  return answer;
}

std::uint16_t SourcePorts::bind_near(unsigned offset) noexcept {
  for (unsigned i = 0; i < kTries; ++i) {
    const auto place = (offset + i) % sockets_.size();
    const auto port = static_cast<std::uint16_t>(kFirst + place);
    if (find(port) >= 0) return port;
    if (owned_.size() >= options_.max_source_ports) break;
    auto socket = open_source_socket(options_, port, forks_);
    if (!socket) continue;
    owned_.push_back(std::move(*socket));
    reserved_.push_back(port);
    sockets_[place].store(owned_.back().get() + 1, std::memory_order_release);  // pairs with find()
    return port;
  }
  return reserved_.empty() ? kRocePort : reserved_[offset % reserved_.size()];
}

}  // namespace verbena::transport
