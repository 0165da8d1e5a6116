#include "ucm/service.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "device/clock.h"
#include "device/log.h"
#include "host/management_name.h"
#include "transport/no_cancel.h"
#include "ucm/command_bytes.h"
#include "ucm/descriptors.h"

namespace verbena::ucm {

struct Service::Row {
  const char* name = nullptr;
  Handler handler = nullptr;  // nullptr: refused as the kernel refuses what it does not have
};

// By number of the command.
const Service::Row* Service::row_of(std::uint32_t command) noexcept {
  static constexpr std::array<Row, RDMA_USER_CM_CMD_JOIN_MCAST + 1> kRows{{
      {"create_id", &Service::create_id},
      {"destroy_id", &Service::destroy_id},
      {"bind_ip", &Service::bind_ip},
      {"resolve_ip", &Service::resolve_ip},
      {"resolve_route", &Service::resolve_route},
      {"query_route", &Service::query_route},
      {"connect", &Service::connect},
      {"listen", &Service::listen},
      {"accept", &Service::accept},
      {"reject", &Service::reject},
      {"disconnect", &Service::disconnect},
      {"init_qp_attr", &Service::init_qp_attributes},
      {"get_event", nullptr},  // waits, and so goes another way
      {"get_option", nullptr},
      {"set_option", &Service::set_option},
      {"notify", &Service::notify},
      {"join_ip_mcast", &Service::join_ip},
      {"leave_mcast", &Service::leave},
      {"migrate_id", &Service::migrate_id},
      {"query", &Service::query},
      {"bind", &Service::bind},
      {"resolve_addr", &Service::resolve_address},
      {"join_mcast", &Service::join},
  }};
  return command < kRows.size() ? &kRows[command] : nullptr;
}

namespace {

// Replaced in a child of fork; written where there is one thread only, or under the handlers' lock.
std::mutex& instance_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}
Service* current = nullptr;  // guarded by instance_mutex()

// librdmacm asks for port spaces only to see whether they are there: that is no news to anybody.
int errno_of(const Error& error) noexcept {
  if (error.system_errno == EOPNOTSUPP) {
    device::log(device::Severity::kDebug, error.message);
  } else {
    device::report(error);
  }
  return error.system_errno != 0 ? error.system_errno : EINVAL;
}

[[gnu::destructor]] void hang_up_at_exit() noexcept {
  Service* service = nullptr;
  if (instance_mutex().try_lock()) {
    service = current;
    instance_mutex().unlock();
  }
  if (service != nullptr) service->hang_up();
}

}  // namespace

Service* Service::instance() noexcept {
  const std::lock_guard guard(instance_mutex());
  if (current == nullptr) current = new (std::nothrow) Service;
  return current;
}

// --- fork: nothing of the parent's is the child's, which may begin anew

void Service::before_fork() noexcept {
  instance_mutex().lock();
  if (current != nullptr) current->mutex_.lock();
}

void Service::after_fork_in_parent() noexcept {
  if (current != nullptr) current->mutex_.unlock();
  instance_mutex().unlock();
}

void Service::after_fork_in_child() noexcept {
  if (current != nullptr) {
    current->abandon();
    current->mutex_.unlock();
    current = nullptr;
  }
  instance_mutex().unlock();
}

// What keeps names taken or the parent's channels open is closed; the rest is left as it lies.
void Service::abandon() noexcept {
  alive_ = false;
  epoll_.reset();
  wake_.reset();
  inbox_.reset();
  for (auto& [number, identifier] : identifiers_) {
    identifier->claim.reset();
    identifier->channel.reset();
  }
  channels_.clear();
}

// --- start

std::uint32_t Service::draw() {
  std::uint32_t value = 0;
  if (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) value = ++drawn_ * 2654435761U;
  return value;
}

Status Service::start() {
  if (!runtime_) {
    auto runtime = device::Runtime::acquire();
    if (!runtime) return tl::make_unexpected(runtime.error());
    runtime_ = std::move(*runtime);
  }
  // Behind those of the runtime, so that they run before: its locks are taken under ours.
  static const int fork_handlers = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  if (fork_handlers != 0) return failure(ErrorCode::kExhausted, "no memory for fork handlers", fork_handlers);
  if (started_) return {};
  Status result = start_thread();
  if (result) return result;
  // The next to ask begins anew.
  inbox_.reset();
  epoll_.reset();
  wake_.reset();
  machine_.reset();
  return result;
}

Status Service::start_thread() {
  const std::uint32_t first = draw();
  unsigned process = 0;
  for (unsigned i = 0; i < host::kConnectionProcesses && !inbox_; ++i) {
    process = (first + i) % host::kConnectionProcesses;
    inbox_ = bind_abstract(host::connection_process_name(process));
    if (!inbox_ && errno != EADDRINUSE) break;
  }
  if (!inbox_) return tl::make_unexpected(device::system_error("a socket for messages of rdma_cm"));
  epoll_ = transport::Fd(::epoll_create1(EPOLL_CLOEXEC));
  wake_ = transport::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_ || !wake_) return tl::make_unexpected(device::system_error("descriptors for rdma_cm"));
  for (const int fd : {inbox_.get(), wake_.get()}) {
    if (auto watched = watch(fd); !watched) return watched;
  }
  machine_.emplace(process << host::kConnectionIndexBits, (1U << host::kConnectionIndexBits) - 1, draw());

  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread inherits it: signals are the application's
  Status result;
  try {
    std::thread thread([this] { run(); });
    pthread_setname_np(thread.native_handle(), "verbena-cm");
    thread.detach();
    started_ = true;
  } catch (const std::system_error& error) {
    result =
        failure(ErrorCode::kExhausted, fmt::format("no thread for rdma_cm: {}; see ulimit -u", error.what()), EAGAIN);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return result;
}

int Service::open_channel(int flags) noexcept {
  try {
    const std::lock_guard guard(mutex_);
    if (auto started = start(); !started) {
      errno = errno_of(started.error());
      return -1;
    }
    auto opened = Channel::open(flags);
    if (!opened) {
      errno = errno_of(opened.error());
      return -1;
    }
    const auto& [channel, fd] = *opened;
    if (!remember_channel(fd)) {
      ::close(fd);
      errno = EMFILE;
      return -1;
    }
    channels_[channel->inode()] = channel;
    channel_ends_[channel->own_fd()] = channel->inode();
    if (auto watched = watch(channel->own_fd()); !watched) {
      channels_.erase(channel->inode());
      channel_ends_.erase(channel->own_fd());
      ::close(fd);
      errno = errno_of(watched.error());
      return -1;
    }
    return fd;
  } catch (...) {
    errno = ENOMEM;
    return -1;
  }
}

// --- commands

ssize_t Service::command(int fd, std::uint64_t inode, const void* bytes, std::size_t size) noexcept {
  const transport::NoCancel guard;
  try {
    return carry_out(fd, inode, {static_cast<const std::byte*>(bytes), size});
  } catch (...) {
    errno = ENOMEM;
    return -1;
  }
}

ssize_t Service::carry_out(int fd, std::uint64_t inode, std::span<const std::byte> bytes) {
  rdma_ucm_cmd_hdr header{};
  if (bytes.size() < sizeof header) {
    errno = EINVAL;
    return -1;
  }
  std::memcpy(&header, bytes.data(), sizeof header);
  const Row* const row = row_of(header.cmd);
  if (row == nullptr || bytes.size() < sizeof header + header.in) {
    errno = EINVAL;
    return -1;
  }
  const auto rest = bytes.subspan(sizeof header, header.in);
  int error = 0;
  if (header.cmd == RDMA_USER_CM_CMD_GET_EVENT) {
    error = get_event(fd, inode, rest, header.out);
  } else if (row->handler == nullptr) {
    device::log(device::Severity::kInfo, fmt::format("rdma_cm: {} is not offered", row->name));
    error = ENOSYS;
  } else {
    const std::lock_guard guard(mutex_);
    const auto channel = channel_of(inode);
    if (channel == nullptr) {
      error = ENODEV;  // of the parent of a fork
    } else {
      const auto done = (this->*row->handler)({*channel, fd, rest, header.out});
      pump();
      wake_in_time();
      if (!done) error = errno_of(done.error());
    }
  }
  if (error == 0) return static_cast<ssize_t>(bytes.size());
  errno = error;
  return -1;
}

int Service::get_event(int fd, std::uint64_t inode, std::span<const std::byte> bytes, std::size_t room) {
  rdma_ucm_get_event request{};
  if (bytes.size() < sizeof request) return EINVAL;
  std::memcpy(&request, bytes.data(), sizeof request);
  if (room < offsetof(rdma_ucm_event_resp, reserved)) return ENOSPC;
  if (request.response == 0) return EFAULT;
  for (;;) {
    {
      const std::lock_guard guard(mutex_);
      if (channel_of(inode) == nullptr) return ENODEV;
    }
    if (const int error = Channel::take_turn(fd); error != 0) return error;
    const std::lock_guard guard(mutex_);
    const auto channel = channel_of(inode);
    if (channel == nullptr) return ENODEV;
    const auto event = channel->take();
    if (!event) continue;  // destroyed between its byte and now
    std::memcpy(reinterpret_cast<void*>(static_cast<std::uintptr_t>(request.response)), &event->response,
                std::min(room, sizeof event->response));
    // The program has it now: it is none of those that wait behind its listener any more.
    if (const Identifier* const child = find(event->child); child != nullptr && event->child != 0) {
      if (Identifier* const listener = find(child->listener)) listener->waiting.erase(event->child);
    }
    if (Identifier* const counting = find(event->counted_by)) ++counting->events_reported;
    if (const auto membership = memberships_.find(event->multicast); membership != memberships_.end()) {
      ++membership->second.events_reported;
    }
    return 0;
  }
}

std::shared_ptr<Channel> Service::channel_of(std::uint64_t inode) {
  const auto found = channels_.find(inode);
  return found == channels_.end() ? nullptr : found->second;
}

Identifier* Service::find(std::uint32_t number) {
  const auto found = identifiers_.find(number);
  return found == identifiers_.end() ? nullptr : found->second.get();
}

Result<Identifier*> Service::find(const Command& command, std::uint32_t number) {
  Identifier* const identifier = find(number);
  if (identifier == nullptr) {
    return failure(ErrorCode::kNotFound, fmt::format("rdma_cm: no identifier {}", number), ENOENT);
  }
  if (identifier->channel.get() != &command.channel) {
    return failure(ErrorCode::kInvalidArgument, fmt::format("rdma_cm: identifier {} is of another channel", number),
                   EINVAL);
  }
  return identifier;
}

Identifier& Service::make_identifier(const std::shared_ptr<Channel>& channel) {
  while (next_number_ == 0 || identifiers_.contains(next_number_)) next_number_ = (next_number_ + 1) & 0x7fffffff;
  auto made = std::make_unique<Identifier>();
  made->number = next_number_++;
  made->channel = channel;
  made->psn = Psn(draw());
  return *(identifiers_[made->number] = std::move(made));
}

void Service::destroy(std::uint32_t number) {
  Identifier* const identifier = find(number);
  if (identifier == nullptr) return;
  const auto of_this = [&](const WaitingEvent& event) { return event.counted_by == number || event.child == number; };
  // Requests that nobody has looked at end with who listened for them.
  const auto waiting = identifier->waiting;
  auto& events = identifier->channel->events();
  for (const std::uint32_t child : waiting) {
    const bool unseen = std::any_of(events.begin(), events.end(), [&](auto& event) { return event.child == child; });
    if (unseen) destroy(child);
  }
  std::erase_if(events, of_this);
  if (identifier->connection != 0) {
    by_connection_.erase(identifier->connection);
    machine_->release(identifier->connection, device::now());
  }
  if (Identifier* const listener = find(identifier->listener)) listener->waiting.erase(number);
  for (const std::uint32_t membership : identifier->multicasts) memberships_.erase(membership);
  identifiers_.erase(number);
}

void Service::close_channel(const std::shared_ptr<Channel>& channel) {
  std::vector<std::uint32_t> numbers;
  for (const auto& [number, identifier] : identifiers_) {
    if (identifier->channel == channel) numbers.push_back(number);
  }
  for (const std::uint32_t number : numbers) destroy(number);
  channel_ends_.erase(channel->own_fd());
  channels_.erase(channel->inode());
  pump();
  if (channels_.empty() && machine_->size() == 0) runtime_.reset();
}

void Service::hang_up() noexcept {
  const std::unique_lock guard(mutex_, std::try_to_lock);
  if (!guard.owns_lock() || !alive_ || !started_ || !runtime_) return;
  try {
    for (const auto& [number, identifier] : identifiers_) {
      if (identifier->connection != 0) machine_->release(identifier->connection, device::now());
    }
    pump();
  } catch (const std::exception&) {
    return;  // the process ends in any case
  }
}

// --- events

void Service::post(Identifier& identifier, const WaitingEvent& event) {
  WaitingEvent whole = event;
  whole.counted_by = identifier.number;
  whole.response.uid = identifier.uid;
  if (whole.child == 0) whole.response.id = identifier.number;
  identifier.channel->post(whole);
}

void Service::post(Identifier& identifier, EventKind kind, int status) {
  if (identifier.uid == 0) return;  // of a request that nobody has accepted: the program does not know it
  WaitingEvent waiting;
  waiting.response.event = number(kind);
  waiting.response.status = static_cast<std::uint32_t>(status);
  post(identifier, waiting);
}

std::pair<std::uint8_t, std::uint8_t> Identifier::transport() const noexcept {
  constexpr std::uint8_t kUc = 3;       // IBV_QPT_UC
  constexpr std::uint8_t kXrcSend = 9;  // IBV_QPT_XRC_SEND
  constexpr std::uint8_t kReliable = 0;
  constexpr std::uint8_t kUnreliable = 1;
  constexpr std::uint8_t kExtended = 3;
  constexpr std::uint8_t kExtendedIsXrc = 1;
  if (qp_type == kXrcSend) return {kExtended, kExtendedIsXrc};
  return {qp_type == kUc ? kUnreliable : kReliable, std::uint8_t{0}};
}

bool Identifier::datagrams() const noexcept {
  constexpr std::uint8_t kUd = 4;  // IBV_QPT_UD
  return qp_type == kUd;
}

}  // namespace verbena::ucm
