#include "cli/counter_source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/clock.h"
#include "cli/descriptor.h"
#include "host/hello.h"
#include "host/slot_name.h"

namespace verbena::cli {
namespace {

constexpr std::size_t kLargestPage = std::size_t{1} << 22;

// A process that was asked and has not answered.
struct Question {
  Slot slot;
  Descriptor socket;
  ucred peer{};
};

// What came of asking: a page, a reason for silence, or neither where the process is gone.
struct Answer {
  std::optional<host::CounterPageReading> page;
  std::string silence;
};

std::optional<sockaddr_un> address_of(Slot slot, socklen_t& length) {
  const std::string name = host::slot_name(slot);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() > sizeof address.sun_path) return std::nullopt;
  std::memcpy(address.sun_path, name.data(), name.size());
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  return address;
}

Descriptor connect_to(Slot slot) {
  socklen_t length = 0;
  const auto address = address_of(slot, length);
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!address || !socket) return {};
  // The sockets interface takes every kind of address through the one type.
  const auto* generic = reinterpret_cast<const sockaddr*>(&*address);
  if (::connect(socket.get(), generic, length) != 0) return Descriptor();
  return socket;
}

// Errno tells why where the answer is empty.
std::optional<Question> ask(Slot slot) {
  errno = 0;
  Question question{slot, connect_to(slot), {}};
  if (!question.socket) return std::nullopt;
  socklen_t length = sizeof question.peer;
  ::getsockopt(question.socket.get(), SOL_SOCKET, SO_PEERCRED, &question.peer, &length);
  const auto message = host::encode(
      host::Hello{.kind = host::HelloKind::kReadCounters, .slot = {}, .pid = static_cast<std::uint32_t>(::getpid())});
  if (::send(question.socket.get(), message.data(), message.size(), MSG_NOSIGNAL) < 0) return std::nullopt;
  return question;
}

// The descriptors that came with `header`; the caller owns them.
std::vector<Descriptor> take_descriptors(msghdr& header) {
  std::vector<Descriptor> taken;
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr; control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof fd);
      taken.emplace_back(fd);
    }
  }
  return taken;
}

// Memory that cannot shrink under the reader, and so cannot fault.
bool is_sealed(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

Result<host::CounterPageReading> read_page(int fd) {
  struct stat status {};
  if (!is_sealed(fd) || ::fstat(fd, &status) != 0) {
    return failure(ErrorCode::kInvalidArgument, "what it sent is not sealed memory");
  }
  const auto bytes = static_cast<std::size_t>(status.st_size);
  if (bytes == 0 || bytes > kLargestPage) {
    return failure(ErrorCode::kInvalidArgument, fmt::format("it sent a counter page of {} bytes", bytes));
  }
  void* memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    return failure(ErrorCode::kUnavailable, fmt::format("cannot map its counters: {}", std::strerror(errno)), errno);
  }
  auto page = host::read_counter_page({static_cast<const std::byte*>(memory), bytes});
  ::munmap(memory, bytes);
  return page;
}

bool is_gone(const ucred& peer) {
  return peer.pid > 0 && ::kill(peer.pid, 0) != 0 && errno == ESRCH;
}

std::string why_closed(const ucred& peer) {
  if (::geteuid() != 0 && peer.uid != ::geteuid()) {
    return fmt::format("it belongs to another user (uid {}); ask as that user or as root", peer.uid);
  }
  return "it closed the connection without an answer";
}

// Requires: the socket is readable.
Answer take_answer(const Question& question) {
  std::array<std::byte, host::kHelloBytes * 4> bytes{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control{};
  iovec part{bytes.data(), bytes.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t received = ::recvmsg(question.socket.get(), &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (received <= 0) return is_gone(question.peer) ? Answer{} : Answer{{}, why_closed(question.peer)};
  const std::vector<Descriptor> descriptors = take_descriptors(header);
  const auto hello = host::decode_hello(std::span(bytes).first(static_cast<std::size_t>(received)));
  if (!hello || hello->kind != host::HelloKind::kCounters || descriptors.size() != 1) {
    return {{}, "its answer is not one of this version of Verbena"};
  }
  auto page = read_page(descriptors.front().get());
  if (!page) return {{}, page.error().message};
  return {std::move(*page), {}};
}

std::uint32_t pid_of(const Question& question) {
  return question.peer.pid > 0 ? static_cast<std::uint32_t>(question.peer.pid) : 0;
}

// A process that holds several slots answers for each with the same page: it is one process.
void add(CounterSurvey& survey, const Question& question, Answer answer) {
  const std::uint32_t pid = pid_of(question);
  if (!answer.page) {
    if (!answer.silence.empty()) survey.silent.push_back({question.slot, pid, std::move(answer.silence)});
    return;
  }
  host::CounterPageReading& page = *answer.page;
  const std::uint32_t shown = pid != 0 ? pid : page.pid;
  const auto same = std::find_if(survey.processes.begin(), survey.processes.end(), [&](const ProcessCounters& known) {
    return known.pid == shown && known.page.start_time_ns == page.start_time_ns;
  });
  if (same == survey.processes.end()) {
    survey.processes.push_back({shown, {question.slot}, std::move(page)});
  } else {
    same->slots.push_back(question.slot);
  }
}

void await_answers(CounterSurvey& survey, const std::vector<Question>& questions, Duration patience) {
  const Instant deadline = now() + patience;
  for (const Question& question : questions) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now());
    pollfd readable{question.socket.get(), POLLIN, 0};
    const int timeout = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
    if (::poll(&readable, 1, timeout) > 0) {
      add(survey, question, take_answer(question));
    } else if (!is_gone(question.peer)) {
      add(survey, question, {{}, "it does not answer (stopped, or too busy)"});
    }
  }
}

}  // namespace

std::vector<Slot> listed_slots(std::string_view proc_net_unix) {
  std::vector<Slot> slots;
  while (!proc_net_unix.empty()) {
    const std::size_t end = std::min(proc_net_unix.find('\n'), proc_net_unix.size());
    if (const auto listing = host::parse_unix_socket_line(proc_net_unix.substr(0, end))) slots.push_back(listing->slot);
    proc_net_unix.remove_prefix(std::min(end + 1, proc_net_unix.size()));
  }
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  return slots;
}

CounterSurvey survey_counters(std::span<const Slot> slots, Duration patience) {
  CounterSurvey survey;
  std::vector<Question> questions;
  for (const Slot slot : slots) {
    if (auto question = ask(slot)) {
      questions.push_back(std::move(*question));
    } else if (errno != ECONNREFUSED && errno != ENOENT && errno != ECONNRESET && errno != EPIPE) {
      survey.silent.push_back({slot, 0, fmt::format("cannot ask it: {}", std::strerror(errno))});
    }
  }
  await_answers(survey, questions, patience);
  std::sort(survey.processes.begin(), survey.processes.end(),
            [](const ProcessCounters& a, const ProcessCounters& b) { return a.pid < b.pid; });
  std::sort(survey.silent.begin(), survey.silent.end(),
            [](const SilentProcess& a, const SilentProcess& b) { return a.slot < b.slot; });
  return survey;
}

Result<CounterSurvey> survey_counters(Duration patience) {
  std::ifstream file("/proc/net/unix");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty()) return failure(ErrorCode::kUnavailable, "cannot read /proc/net/unix: is /proc mounted?");
  return survey_counters(listed_slots(text), patience);
}

}  // namespace verbena::cli
