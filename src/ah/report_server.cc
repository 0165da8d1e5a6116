#include "ah/report_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ah/report_text.h"
#include "host/report_name.h"
#include "rdma/verbs_error.h"

namespace verbena::ah {
namespace {

constexpr std::size_t kPageBytes = std::size_t{1} << 20;  // touched only as far as there are directories
constexpr std::size_t kMostClients = 16;
constexpr std::uint32_t kMostNames = 64;
constexpr auto kClientPatience = std::chrono::seconds(1);  // one that does not take its answer is left
constexpr int kListenerRest_ms = 100;

tl::unexpected<Error> exhausted(const char* call) {
  const int error = errno;
  return rdma::verbs_failure(call, "to show the directories", error);
}

std::string process_name() {
  std::array<char, 32> name{};
  ::pthread_getname_np(::pthread_self(), name.data(), name.size());
  const Descriptor file(::open("/proc/self/comm", O_RDONLY | O_CLOEXEC));
  const ssize_t length = file ? ::read(file.get(), name.data(), name.size() - 1) : 0;
  std::string text(name.data(), length > 0 ? static_cast<std::size_t>(length) : std::strlen(name.data()));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::int64_t time_of_day_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool may_ask(int client) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return false;
  return peer.uid == 0 || peer.uid == ::geteuid();
}

void set_all(host::CounterBlock& block, const std::vector<std::uint64_t>& values) {
  if (block.size() == 0) return;
  for (std::size_t row = 0; row < values.size(); ++row) block.set(row, values[row]);
}

std::mutex& current_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

}  // namespace

Result<std::shared_ptr<ReportServer>> ReportServer::of_this_process() {
  static auto& current = *new std::weak_ptr<ReportServer>;  // guarded by current_mutex()
  static pid_t owner = 0;                                   // the same
  const std::lock_guard lock(current_mutex());
  if (auto there = current.lock(); there && owner == ::getpid()) return there;
  std::shared_ptr<ReportServer> server(new ReportServer);
  if (Status status = server->start(); !status) return tl::make_unexpected(status.error());
  current = server;
  owner = ::getpid();
  return server;
}

Status ReportServer::start() {
  wake_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) return exhausted("eventfd");
  if (Status status = make_page(); !status) return status;
  if (Status status = listen(); !status) return status;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    errno = error.code().value();
    return exhausted("thread");
  }
  return {};
}

Status ReportServer::make_page() {
  // Beyond a limit on file sizes (ulimit -f) the kernel would end the application by a signal.
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < kPageBytes) {
    errno = EFBIG;
    return exhausted("memfd");
  }
  page_fd_ = Descriptor(::memfd_create("verbena-directories", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!page_fd_ || ::ftruncate(page_fd_.get(), kPageBytes) != 0) return exhausted("memfd_create");
  void* memory = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, page_fd_.get(), 0);
  if (memory == MAP_FAILED) return exhausted("mmap");
  page_ = {static_cast<std::byte*>(memory), kPageBytes};
  // Others map it for reading only, and cannot cut it short.
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
  if (::fcntl(page_fd_.get(), F_ADD_SEALS, seals) != 0) return exhausted("F_ADD_SEALS");
  const std::string name = process_name();
  writer_ = std::make_unique<host::CounterPageWriter>(
      page_,
      host::CounterPageOwner{
          .pid = static_cast<std::uint32_t>(::getpid()), .start_time_ns = time_of_day_ns(), .process_name = name});
  return {};
}

Status ReportServer::listen() {
  listener_ = Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_) return exhausted("socket");
  for (std::uint32_t number = 0; number < kMostNames; ++number) {
    const std::string name = host::to_socket_name({static_cast<std::uint32_t>(::getpid()), number});
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0) {
      return ::listen(listener_.get(), kMostClients) == 0 ? Status() : exhausted("listen");
    }
    if (errno != EADDRINUSE) break;
  }
  return exhausted("bind");
}

ReportServer::~ReportServer() {
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
    thread_.join();
  }
  if (!page_.empty()) ::munmap(page_.data(), page_.size());
}

ReportServer::Ticket ReportServer::add(ReportSource source) {
  const std::lock_guard lock(mutex_);
  source.name = free_name(source.name);
  const auto block = writer_->add_block(source.name, report_rows());
  shown_.emplace(next_, Shown{std::move(source), block ? *block : host::CounterBlock()});
  return next_++;
}

ReportServer::Ticket ReportServer::add(TenantSource source) {
  const std::lock_guard lock(mutex_);
  source.name = free_name(source.name);
  const auto block = writer_->add_block(source.name, tenant_rows());
  tenants_.emplace(next_, ShownTenant{std::move(source), block ? *block : host::CounterBlock(), {}});
  return next_++;
}

std::string ReportServer::free_name(const std::string& wanted) const {
  const auto taken = [this](const std::string& name) {
    const auto has_it = [&name](const auto& one) { return one.second.source.name == name; };
    return std::any_of(shown_.begin(), shown_.end(), has_it) || std::any_of(tenants_.begin(), tenants_.end(), has_it);
  };
  const std::string stem = wanted.substr(0, host::kMaxBlockName - 8);
  std::string name = stem;
  for (int number = 2; taken(name); ++number) name = fmt::format("{} #{}", stem, number);
  return name;
}

ReportServer::ShownTenant* ReportServer::tenant_of(const void* account) {
  if (account == nullptr) return nullptr;
  const auto found = std::find_if(tenants_.begin(), tenants_.end(),
                                  [account](const auto& one) { return one.second.source.account == account; });
  return found == tenants_.end() ? nullptr : &found->second;
}

void ReportServer::remove(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  if (const auto found = shown_.find(ticket); found != shown_.end()) {
    const AhStats last = refresh(found->second);
    end(found->second.block, report_rows());
    if (ShownTenant* tenant = tenant_of(found->second.source.account); tenant != nullptr) {
      add_events(tenant->past, last);
    }
    shown_.erase(found);
  } else if (const auto tenant = tenants_.find(ticket); tenant != tenants_.end()) {
    refresh(tenant->second);
    end(tenant->second.block, tenant_rows());
    tenants_.erase(tenant);
  }
}

void ReportServer::end(host::CounterBlock& block, std::span<const CounterRow> rows) {
  if (block.size() == 0) return;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (std::string_view(rows[row].unit) != "events") block.set(row, 0);  // a gauge
  }
  writer_->end_block(block);
}

void ReportServer::run() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  ::pthread_setname_np(::pthread_self(), "verbena-report");
  for (;;) {
    std::vector<pollfd> waited{{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Descriptor& client : clients_) waited.push_back({client.get(), POLLIN, 0});
    if (listener_rests_) waited[1].fd = -1;
    if (::poll(waited.data(), waited.size(), listener_rests_ ? kListenerRest_ms : -1) < 0 && errno != EINTR) return;
    if (waited[0].revents != 0) return;
    listener_rests_ = false;
    for (std::size_t i = clients_.size(); i-- > 0;) {
      if (waited[2 + i].revents == 0 || answer(clients_[i])) continue;
      clients_.erase(clients_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (waited[1].revents != 0) accept_one();
  }
}

void ReportServer::accept_one() {
  Descriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  // Who waits in the line of a listener without a descriptor for it would wake poll() for ever.
  listener_rests_ = !client && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
  if (!client || !may_ask(client.get())) return;
  if (clients_.size() == kMostClients) clients_.erase(clients_.begin());
  clients_.push_back(std::move(client));
}

bool ReportServer::answer(const Descriptor& client) {
  char request = 0;
  if (::recv(client.get(), &request, 1, MSG_DONTWAIT) != 1) return false;
  switch (request) {
    case host::kAskPage:
      return send_page(client);
    case host::kAskDump:
      return send_dump(client);
    default:
      return false;
  }
}

bool ReportServer::send_page(const Descriptor& client) {
  char letter = host::kAskPage;
  iovec part{&letter, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = page_fd_.get();
  std::memcpy(CMSG_DATA(rights), &fd, sizeof fd);
  refresh();
  return ::sendmsg(client.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

void ReportServer::refresh() {
  const std::lock_guard lock(mutex_);
  for (auto& [ticket, shown] : shown_) refresh(shown);
  for (auto& [ticket, tenant] : tenants_) refresh(tenant);
}

AhStats ReportServer::refresh(Shown& shown) {
  const AhStats stats = shown.source.stats();
  set_all(shown.block, report_values(stats));
  return stats;
}

void ReportServer::refresh(ShownTenant& tenant) {
  DirectorySum sum{.directories = 0, .stats = tenant.past};
  for (const auto& [ticket, shown] : shown_) {
    if (shown.source.account != tenant.source.account) continue;
    ++sum.directories;
    add_all(sum.stats, shown.source.stats());
  }
  set_all(tenant.block, tenant_values(tenant.source.budget(), sum));
}

std::string ReportServer::dump() {
  std::string text = dump_head();
  const std::lock_guard lock(mutex_);
  for (const auto& [ticket, shown] : shown_) {
    for (const AhRow& row : shown.source.rows()) text += dump_line(shown.source.name, row);
  }
  return text;
}

// False where it did not take it in time, or the server ends.
bool ReportServer::send_in_time(const Descriptor& client, const char* bytes, std::size_t size,
                                Deadline deadline) const {
  for (;;) {
    if (::send(client.get(), bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(size)) return true;
    if (errno != EAGAIN && errno != EINTR) return false;
    std::array<pollfd, 2> waited{pollfd{wake_.get(), POLLIN, 0}, pollfd{client.get(), POLLOUT, 0}};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.when() - Deadline::Clock::now());
    if (left.count() <= 0) return false;
    const int ready = ::poll(waited.data(), waited.size(), static_cast<int>(left.count()));
    if (ready == 0 || waited[0].revents != 0) return false;
  }
}

// One deadline for the whole, so that no reader holds up the others or the end for longer.
bool ReportServer::send_dump(const Descriptor& client) {
  const std::string text = dump();
  const Deadline deadline = Deadline::in(kClientPatience);
  for (std::size_t begin = 0; begin < text.size();) {
    // Whole lines, as many as fit; a line that is longer than a packet is cut into several.
    std::size_t end = std::min(begin + host::kLongestDumpPacket, text.size());
    if (end < text.size()) {
      const std::size_t newline = text.rfind('\n', end - 1);
      if (newline != std::string::npos && newline >= begin) end = newline + 1;
    }
    if (!send_in_time(client, text.data() + begin, end - begin, deadline)) return false;
    begin = end;
  }
  return send_in_time(client, &host::kEndOfDump, 1, deadline);
}

}  // namespace verbena::ah
