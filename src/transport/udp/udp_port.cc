#include "transport/udp/udp_port.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include <sys/epoll.h>

#include "transport/fd.h"
#include "transport/system_error.h"
#include "transport/udp/source_ports.h"
#include "transport/udp/udp_arrivals.h"
#include "transport/udp/udp_sender.h"
#include "transport/udp/udp_socket.h"

namespace verbena::transport {
namespace {

Status watch(const Fd& epoll, const Fd& socket) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) {
    return system_failure("Cannot watch a UDP socket");
  }
  return {};
}

}  // namespace

class UdpPort::Impl {
 public:
  // A socket of which datagrams are taken, and what the kernel said last about those it lost.
  struct Inlet {
    Fd socket;
    std::uint32_t overflows = 0;
  };
  struct Group {
    Gid gid;
    unsigned joined = 0;
    Inlet inlet;
  };

  Impl(const UdpOptions& options, DropCounter& drops, std::unique_ptr<ForkSet> forks, Fd epoll, Fd main)
      : options_(options),
        forks_(std::move(forks)),
        epoll_(std::move(epoll)),
        main_{std::move(main)},
        ports_(options_, *forks_),
        sender_(options_, main_.socket.get(), ports_, drops),
        arrivals_(drops) {}

  std::size_t receive(Receiver& receiver, std::size_t budget) noexcept;
  std::size_t receive_groups(Receiver& receiver, std::size_t budget) noexcept;
  std::size_t drain(Inlet& inlet, Receiver& receiver, std::size_t budget) noexcept;

  const UdpOptions options_;
  std::unique_ptr<ForkSet> forks_;
  Fd epoll_;
  Inlet main_;
  SourcePorts ports_;
  UdpSender sender_;
  UdpArrivals arrivals_;
  std::atomic<bool> has_groups_{false};
  std::mutex mutex_;  // guards groups_
  // Shared, so that a receiver may leave the group whose datagram it is handed.
  std::vector<std::shared_ptr<Group>> groups_;
};

std::size_t UdpPort::Impl::drain(Inlet& inlet, Receiver& receiver, std::size_t budget) noexcept {
  std::size_t count = 0;
  while (count < budget) {
    const std::size_t wanted = std::min(budget - count, UdpArrivals::kRun);
    const std::size_t here = arrivals_.take(inlet.socket.get(), receiver, wanted, inlet.overflows);
    count += here;
    if (here < wanted) break;
  }
  return count;
}

std::size_t UdpPort::Impl::receive_groups(Receiver& receiver, std::size_t budget) noexcept {
  std::unique_lock lock(mutex_);
  const auto groups = groups_;
  lock.unlock();
  std::size_t count = 0;
  for (const auto& group : groups) count += drain(group->inlet, receiver, budget - std::min(budget, count));
  return count;
}

std::size_t UdpPort::Impl::receive(Receiver& receiver, std::size_t budget) noexcept {
  std::size_t count = drain(main_, receiver, budget);
  // The groups have a share of their own, so that a busy address does not starve them.
  if (has_groups_.load(std::memory_order_relaxed)) count += receive_groups(receiver, budget);
  return count;
}

Result<std::unique_ptr<UdpPort>> UdpPort::open(const UdpOptions& options, DropCounter& drops) {
  auto forks = std::make_unique<ForkSet>();
  auto main = open_main_socket(options, *forks);
  if (!main) return tl::make_unexpected(main.error());
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC), *forks);
  if (!epoll) return system_failure("Cannot make an epoll set");
  if (const auto watched = watch(epoll, *main); !watched) return tl::make_unexpected(watched.error());
  auto impl = std::make_unique<Impl>(options, drops, std::move(forks), std::move(epoll), std::move(*main));
  return std::unique_ptr<UdpPort>(new UdpPort(std::move(impl)));
}

UdpPort::UdpPort(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
UdpPort::~UdpPort() = default;

const Gid& UdpPort::address() const noexcept {
  return impl_->options_.address;
}

int UdpPort::fd() const noexcept {
  return impl_->epoll_.get();
}

std::uint16_t UdpPort::reserve_source_port(std::uint16_t wanted) noexcept {
  return impl_->ports_.reserve(wanted);
}

SendResult UdpPort::send(std::span<const Outgoing> batch, Instant /*now*/) noexcept {
  return impl_->sender_.send(batch);
}

std::size_t UdpPort::receive(Receiver& receiver, std::size_t budget) noexcept {
  return impl_->receive(receiver, budget);
}

Status UdpPort::join(const Gid& group) {
  if (!group.is_multicast() || group.is_ipv4_mapped() != address().is_ipv4_mapped()) {
    return failure(ErrorCode::kInvalidArgument,
                   to_string(group) + " is no multicast group of the family of " + to_string(address()) + ".");
  }
  const std::lock_guard lock(impl_->mutex_);
  for (const auto& known : impl_->groups_) {
    if (known->gid == group) {
      ++known->joined;
      return {};
    }
  }
  auto socket = open_group_socket(impl_->options_, group, *impl_->forks_);
  if (!socket) return tl::make_unexpected(socket.error());
  if (auto watched = watch(impl_->epoll_, *socket); !watched) return watched;
  impl_->groups_.push_back(std::make_shared<Impl::Group>(Impl::Group{group, 1, {std::move(*socket)}}));
  impl_->has_groups_.store(true, std::memory_order_relaxed);
  return {};
}

Status UdpPort::leave(const Gid& group) {
  const std::lock_guard lock(impl_->mutex_);
  const auto found = std::ranges::find_if(impl_->groups_, [&](const auto& known) { return known->gid == group; });
  if (found == impl_->groups_.end()) {
    return failure(ErrorCode::kNotFound, "Multicast group " + to_string(group) + " was not joined.");
  }
  if (--(*found)->joined != 0) return {};
  ::epoll_ctl(impl_->epoll_.get(), EPOLL_CTL_DEL, (*found)->inlet.socket.get(), nullptr);
  impl_->groups_.erase(found);
  impl_->has_groups_.store(!impl_->groups_.empty(), std::memory_order_relaxed);
  return {};
}

void UdpPort::abandon() noexcept {
  impl_->forks_->close_all();
  // A thread that is not here may have been in the middle of a change.
  static_cast<void>(impl_.release());
}

}  // namespace verbena::transport
