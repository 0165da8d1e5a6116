#include "transport/shm/doorway.h"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "host/slot_name.h"
#include "transport/system_error.h"

namespace verbena::transport {

Doorway::~Doorway() {
  for (const auto& listener : listeners_) unwatch(epoll_, listener.get());
  for (const auto& [id, connection] : connections_) unwatch(epoll_, connection.fd());
}

Result<Slot> Doorway::claim(std::uint32_t offset) {
  const std::lock_guard lock(mutex_);
  if (listeners_.empty()) spare_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC), forks_);
  for (unsigned attempt = 0; attempt < host::kSlotCount; ++attempt) {
    const Slot slot = host::slot_to_try(offset, attempt);
    auto listener = listen_on_slot(slot, forks_);
    if (!listener && listener.error().code == ErrorCode::kBusy) continue;
    if (!listener) return tl::make_unexpected(listener.error());
    if (!watch_socket(epoll_, listener->get(), {WatchKind::kListener, listeners_.size()})) {
      return system_failure("Cannot watch a Unix socket");
    }
    listeners_.push_back(std::move(*listener));
    return slot;
  }
  return failure(ErrorCode::kExhausted,
                 "All 255 slots of this network namespace are taken by other processes (see @verbena/1/slot/ in "
                 "/proc/net/unix). End one of them.");
}

void Doorway::set_counter_page(int fd, std::size_t bytes) noexcept {
  counter_fd_ = fd;
  counter_bytes_ = bytes;
}

int Doorway::listener(std::uint64_t id) noexcept {
  const std::lock_guard lock(mutex_);
  return id < listeners_.size() ? listeners_[id].get() : -1;
}

void Doorway::on_listener(std::uint64_t id) noexcept {
  const int fd = listener(id);
  while (auto socket = accept_connection(fd, forks_)) {
    if (connections_.size() >= kMaxConnections) continue;
    const auto user = peer_user(socket->get());
    if (!user || (*user != ::geteuid() && *user != 0)) continue;
    if (!watch_socket(epoll_, socket->get(), {WatchKind::kConnection, ++last_id_})) continue;
    connections_.emplace(last_id_, Connection{std::move(*socket), nullptr});
  }
  if (errno == EMFILE || errno == ENFILE) turn_away(fd);
}

// Who waits in the line of the listener would wake the thread for ever: it is turned away, and may come again.
void Doorway::turn_away(int listener) noexcept {
  spare_ = Fd();
  while (accept_connection(listener, forks_)) {
  }
  spare_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC), forks_);
}

void Doorway::on_connection(std::uint64_t id) noexcept {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  auto received = receive_hello(found->second.fd(), forks_);
  switch (received.outcome) {
    case ReceivedHello::Outcome::kNothingYet:
      return;
    case ReceivedHello::Outcome::kHello:
      if (!admit(found->second, std::move(received))) close(id);
      return;
    case ReceivedHello::Outcome::kEnded:
    case ReceivedHello::Outcome::kRefused:
      close(id);
      return;
  }
}

// False where the connection is to be closed.
bool Doorway::admit(Connection& connection, ReceivedHello received) {
  if (connection.inbound) return false;  // one hello a connection
  switch (received.hello.kind) {
    case host::HelloKind::kCounters:
      return false;
    case host::HelloKind::kReadCounters:
      return answer(connection);
    case host::HelloKind::kOpenRing:
      break;
  }
  if (peer_user(connection.socket.get()) != ::geteuid()) return false;
  auto inbound = Inbound::open(received.hello, received.descriptors[0], std::move(received.descriptors[1]), epoll_);
  if (!inbound) {
    if (!explained_) drops_.explain(inbound.error().message);
    explained_ = true;
    return false;
  }
  (*inbound)->keep_connection(std::move(connection.socket));
  connection.inbound = *inbound;
  const std::lock_guard lock(mutex_);
  arrivals_.push_back(std::move(*inbound));
  news_.store(true, std::memory_order_release);
  return true;
}

// Always false: the connection is done with.
bool Doorway::answer(const Connection& connection) const {
  if (counter_fd_ < 0) return false;
  const host::Hello hello{.kind = host::HelloKind::kCounters,
                          .slot = host::kManagementSlot,
                          .pid = static_cast<std::uint32_t>(::getpid()),
                          .memory_bytes = counter_bytes_};
  send_hello(connection.socket.get(), hello, std::span(&counter_fd_, 1));
  return false;
}

void Doorway::close(std::uint64_t id) {
  const auto found = connections_.find(id);
  unwatch(epoll_, found->second.fd());
  if (found->second.inbound) {
    found->second.inbound->hang_up();
    found->second.inbound->end();
    news_.store(true, std::memory_order_release);
  }
  connections_.erase(found);
}

void Doorway::take_news(std::vector<std::shared_ptr<Inbound>>& into) {
  const std::lock_guard lock(mutex_);
  news_.exchange(false, std::memory_order_acq_rel);  // pairs with close(): the ends before it are seen after it
  for (auto& arrival : arrivals_) into.push_back(std::move(arrival));
  arrivals_.clear();
}

}  // namespace verbena::transport
