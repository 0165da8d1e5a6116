#include "verbena/network_watcher.h"

#include <array>
#include <cerrno>
#include <compare>
#include <csignal>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rdma/netlink.h"
#include "rdma/network_notice.h"
#include "rdma/verbs_error.h"

namespace verbena {

namespace {

constexpr std::size_t kMostDatagram = 65536;
constexpr int kReceiveBytes = 4 << 20;  // some thousands of notices: all neighbours of a port that flaps

constexpr std::array kGroups{RTNLGRP_LINK,      RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR,
                             RTNLGRP_NEIGH,     RTNLGRP_IPV4_ROUTE,  RTNLGRP_IPV6_ROUTE,
                             RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE,   RTNLGRP_NEXTHOP};

// A network namespace, and the process: a child of fork has none of its parent's threads.
struct Place {
  dev_t device = 0;
  ino_t inode = 0;
  pid_t process = 0;

  friend auto operator<=>(const Place&, const Place&) = default;
};

std::optional<Place> place_of_this_thread() {
  struct stat found {};
  if (::stat("/proc/thread-self/ns/net", &found) != 0) return std::nullopt;
  return Place{.device = found.st_dev, .inode = found.st_ino, .process = ::getpid()};
}

struct Registry {
  std::mutex mutex;
  std::map<Place, std::weak_ptr<NetworkWatcher>> watchers;  // guarded by mutex
};

// Never destroyed: a watcher may outlive the end of main.
Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

Result<rdma::NetlinkSocket> open_subscribed() {
  Result<rdma::NetlinkSocket> socket = rdma::NetlinkSocket::open(NETLINK_ROUTE, SOCK_NONBLOCK);
  if (!socket) return socket;
  // Beyond the system's limit only a privileged process may go.
  if (::setsockopt(socket->fd(), SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBytes, sizeof kReceiveBytes) != 0) {
    ::setsockopt(socket->fd(), SOL_SOCKET, SO_RCVBUF, &kReceiveBytes, sizeof kReceiveBytes);
  }
  for (const int group : kGroups) {
    if (::setsockopt(socket->fd(), SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) == 0) continue;
    if (group == RTNLGRP_NEXTHOP) continue;  // a kernel before 5.3 has none
    return rdma::verbs_failure("setsockopt", "of an rtnetlink group", errno);
  }
  return socket;
}

void block_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace

struct NetworkWatcher::State {
  State(rdma::NetlinkSocket opened, int wake) : socket(std::move(opened)), wake_fd(wake), process(::getpid()) {}

  void run();
  void receive_one();
  void discard_all();
  void deliver(const NetworkChange& change);

  rdma::NetlinkSocket socket;
  int wake_fd;
  pid_t process;
  std::vector<std::uint8_t> datagram = std::vector<std::uint8_t>(kMostDatagram);  // the thread's own
  // Held while a subscriber runs, so that unsubscribe() waits; recursive, so that a subscriber may unsubscribe.
  std::recursive_mutex mutex;
  std::map<Ticket, std::shared_ptr<Subscriber>> subscribers;  // guarded by mutex
  Ticket next = 1;                                            // guarded by mutex
  std::thread thread;
};

Result<std::shared_ptr<NetworkWatcher>> NetworkWatcher::of_this_namespace() {
  const std::optional<Place> place = place_of_this_thread();
  const std::lock_guard lock(registry().mutex);
  std::erase_if(registry().watchers, [](const auto& entry) { return entry.second.expired(); });
  if (place) {
    const auto there = registry().watchers.find(*place);
    std::shared_ptr<NetworkWatcher> watcher = there != registry().watchers.end() ? there->second.lock() : nullptr;
    if (watcher) return watcher;
  }
  Result<rdma::NetlinkSocket> socket = open_subscribed();
  if (!socket) return tl::make_unexpected(socket.error());
  const int wake_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd < 0) return rdma::verbs_failure("eventfd", "of the network watcher", errno);
  auto state = std::make_unique<State>(std::move(*socket), wake_fd);
  State& running = *state;
  std::shared_ptr<NetworkWatcher> watcher(new NetworkWatcher(std::move(state)));
  try {
    running.thread = std::thread([&running] { running.run(); });
  } catch (const std::system_error& error) {
    return rdma::verbs_failure("thread", "of the network watcher", error.code().value());
  }
  if (place) registry().watchers[*place] = watcher;
  return watcher;
}

NetworkWatcher::NetworkWatcher(std::unique_ptr<State> state) : state_(std::move(state)) {}

NetworkWatcher::~NetworkWatcher() {
  if (state_->process != ::getpid()) {
    // The thread was left behind in the parent, and what it was holding at the fork is in no state to be destroyed.
    const rdma::NetlinkSocket closed(std::move(state_->socket));
    ::close(state_->wake_fd);
    static_cast<void>(state_.release());
    return;
  }
  if (state_->thread.joinable()) {
    const std::uint64_t one = 1;
    while (::write(state_->wake_fd, &one, sizeof one) < 0 && errno == EINTR) {
    }
    state_->thread.join();
  }
  ::close(state_->wake_fd);
}

NetworkWatcher::Ticket NetworkWatcher::subscribe(Subscriber subscriber) {
  const std::lock_guard lock(state_->mutex);
  if (subscriber) state_->subscribers.emplace(state_->next, std::make_shared<Subscriber>(std::move(subscriber)));
  return state_->next++;
}

void NetworkWatcher::unsubscribe(Ticket ticket) {
  const std::lock_guard lock(state_->mutex);
  state_->subscribers.erase(ticket);
}

void NetworkWatcher::State::run() {
  block_signals();
  pthread_setname_np(pthread_self(), "verbena-network");
  std::array<pollfd, 2> entries{
      {{.fd = wake_fd, .events = POLLIN, .revents = 0}, {.fd = socket.fd(), .events = POLLIN, .revents = 0}}};
  for (;;) {
    if (::poll(entries.data(), entries.size(), -1) < 0) continue;  // EINTR; no other error is possible here
    if (entries[0].revents != 0) return;
    if (entries[1].revents != 0) receive_one();
  }
}

void NetworkWatcher::State::receive_one() {
  sockaddr_nl from{};
  iovec into{.iov_base = datagram.data(), .iov_len = datagram.size()};
  msghdr message{};
  message.msg_name = &from;
  message.msg_namelen = sizeof from;
  message.msg_iov = &into;
  message.msg_iovlen = 1;
  const ssize_t got = ::recvmsg(socket.fd(), &message, 0);
  if (got < 0 && errno != ENOBUFS) return;
  if (got < 0 || (message.msg_flags & MSG_TRUNC) != 0) {
    discard_all();
    deliver(NetworkChange{});
  } else if (from.nl_pid == 0) {  // any process may send to a netlink socket: only the kernel is believed
    rdma::read_notices(rdma::Octets(datagram).first(static_cast<std::size_t>(got)),
                       [this](const NetworkChange& change) { deliver(change); });
  }
}

// Once notices were lost the kernel drops more, and says nothing, until the queue has been empty: only what happens
// after that is told again, so only then may kLost be said.
void NetworkWatcher::State::discard_all() {
  for (;;) {
    if (::recv(socket.fd(), datagram.data(), datagram.size(), 0) < 0 && errno == EAGAIN) return;
  }
}

void NetworkWatcher::State::deliver(const NetworkChange& change) {
  const std::lock_guard lock(mutex);
  for (auto at = subscribers.begin(); at != subscribers.end();) {
    const Ticket ticket = at->first;
    const std::shared_ptr<Subscriber> subscriber = at->second;  // it may unsubscribe itself
    (*subscriber)(change);
    at = subscribers.upper_bound(ticket);
  }
}

}  // namespace verbena
