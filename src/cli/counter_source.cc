#include "cli/counter_source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/clock.h"
#include "cli/descriptor.h"
#include "cli/descriptor_limit.h"
#include "cli/process_socket.h"
#include "host/hello.h"
#include "host/slot_name.h"

namespace verbena::cli {
namespace {

constexpr const char* kNoDescriptor = "its counters cannot be taken: too many open files here";

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
  bool short_of_descriptors = false;
};

// Errno tells why where the answer is empty.
std::optional<Question> ask(Slot slot) {
  errno = 0;
  Question question{slot, connect_to(host::slot_name(slot)), {}};
  if (!question.socket) return std::nullopt;
  question.peer = peer_of(question.socket);
  const auto message = host::encode(
      host::Hello{.kind = host::HelloKind::kReadCounters, .slot = {}, .pid = static_cast<std::uint32_t>(::getpid())});
  if (::send(question.socket.get(), message.data(), message.size(), MSG_NOSIGNAL) >= 0) return question;
  // Closed already, which the answer shows as well: a process may turn strangers away before they have asked.
  const bool is_closed = errno == EPIPE || errno == ECONNRESET;
  return is_closed ? std::optional(std::move(question)) : std::nullopt;
}

// Requires: the socket is readable.
Answer take_answer(const Question& question) {
  std::array<std::byte, host::kHelloBytes * 4> bytes{};
  const Received received = receive(question.socket, bytes);
  if (received.size == 0) return is_gone(question.peer) ? Answer{} : Answer{{}, why_closed(question.peer)};
  if (received.short_of_descriptors) return {{}, kNoDescriptor, true};
  const auto hello = host::decode_hello(std::span(bytes).first(received.size));
  if (!hello || hello->kind != host::HelloKind::kCounters || received.descriptors.size() != 1) {
    return {{}, "its answer is not one of this version of Verbena"};
  }
  auto page = read_page(received.descriptors.front());
  if (!page) return {{}, page.error().message};
  return {std::move(*page), {}};
}

std::uint32_t pid_of(const Question& question) {
  return question.peer.pid > 0 ? static_cast<std::uint32_t>(question.peer.pid) : 0;
}

void note_shortage(CounterSurvey& survey, int number) {
  if (is_descriptor_shortage(number)) survey.shortage = descriptor_shortage("cannot ask every process", number);
}

// A process that holds several slots answers for each with the same page: it is one process.
void add(CounterSurvey& survey, const Question& question, Answer answer) {
  const std::uint32_t pid = pid_of(question);
  if (answer.short_of_descriptors) note_shortage(survey, EMFILE);
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
    if (wait_readable(question.socket, deadline)) {
      add(survey, question, take_answer(question));
    } else if (!is_gone(question.peer)) {
      add(survey, question, {{}, "it does not answer (stopped, or too busy)"});
    }
  }
}

}  // namespace

std::vector<Slot> listed_slots(std::span<const std::string> proc_net_unix) {
  std::vector<Slot> slots;
  for (const std::string& line : proc_net_unix) {
    if (const auto listing = host::parse_unix_socket_line(line)) slots.push_back(listing->slot);
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
    } else if (const int number = errno; number != ECONNREFUSED && number != ENOENT) {
      survey.silent.push_back({slot, 0, fmt::format("cannot ask it: {}", std::strerror(number))});
      note_shortage(survey, number);
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
  const auto lines = listed_sockets();
  if (!lines) return tl::make_unexpected(lines.error());
  return survey_counters(listed_slots(*lines), patience);
}

}  // namespace verbena::cli
