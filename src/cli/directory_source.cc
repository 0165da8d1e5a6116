#include "cli/directory_source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <sys/socket.h>

#include "cli/clock.h"
#include "cli/descriptor_limit.h"
#include "cli/process_socket.h"
#include "host/report_name.h"
#include "host/unix_socket_line.h"

namespace verbena::cli {
namespace {

constexpr std::size_t kLongestDump = std::size_t{1} << 28;

bool ask(const Descriptor& socket, char request) {
  return ::send(socket.get(), &request, 1, MSG_NOSIGNAL) == 1;
}

std::string why_silent(const Descriptor& socket, bool answered) {
  const ucred peer = peer_of(socket);
  if (is_gone(peer)) return {};
  return answered ? why_closed(peer) : "it does not answer (stopped, or too busy)";
}

// The page; else the reason for silence, empty where the process is gone.
Result<host::CounterPageReading> take_page(const Descriptor& socket, Instant deadline) {
  std::array<std::byte, 16> bytes{};
  if (!ask(socket, host::kAskPage)) return failure(ErrorCode::kUnavailable, why_silent(socket, true));
  if (!wait_readable(socket, deadline)) return failure(ErrorCode::kTimedOut, why_silent(socket, false));
  const Received received = receive(socket, bytes);
  if (received.size == 0) return failure(ErrorCode::kUnavailable, why_silent(socket, true));
  if (received.short_of_descriptors) {
    return failure(ErrorCode::kExhausted, "its counts cannot be taken: too many open files here", EMFILE);
  }
  if (received.size != 1 || bytes[0] != std::byte{host::kAskPage} || received.descriptors.size() != 1) {
    return failure(ErrorCode::kInvalidArgument, "its answer is not one of this version of Verbena");
  }
  return read_page(received.descriptors.front());
}

Result<std::string> take_dump(const Descriptor& socket, Instant deadline) {
  if (!ask(socket, host::kAskDump)) return failure(ErrorCode::kUnavailable, why_silent(socket, true));
  std::string text;
  std::vector<std::byte> bytes(host::kLongestDumpPacket);
  while (text.size() < kLongestDump) {
    if (!wait_readable(socket, deadline)) return failure(ErrorCode::kTimedOut, why_silent(socket, false));
    const Received received = receive(socket, bytes);
    if (received.size == 0) return failure(ErrorCode::kUnavailable, why_silent(socket, true));
    if (received.size == 1 && bytes[0] == std::byte{host::kEndOfDump}) return text;
    text.append(reinterpret_cast<const char*>(bytes.data()), received.size);
  }
  return failure(ErrorCode::kInvalidArgument, "it sends more entries than a directory can have");
}

void note_shortage(DirectorySurvey& survey, int number) {
  if (is_descriptor_shortage(number)) survey.shortage = descriptor_shortage("cannot ask every process", number);
}

// Of process `only`, where that is not 0.
void add(DirectorySurvey& survey, Ask what, const host::ReportName& name, std::uint32_t only, Duration patience) {
  const Descriptor socket = connect_to(host::to_socket_name(name));
  if (!socket) return note_shortage(survey, errno);  // else it has just ended
  const auto pid_seen = peer_of(socket).pid;
  const std::uint32_t pid = pid_seen > 0 ? static_cast<std::uint32_t>(pid_seen) : name.pid;
  if (only != 0 && pid != only) return;
  const auto silent = [&](const Error& error) {
    if (!error.message.empty()) survey.silent.push_back({pid, error.message});
    note_shortage(survey, error.system_errno);
  };
  const Instant deadline = now() + patience;
  auto page = take_page(socket, deadline);
  if (!page) return silent(page.error());
  DirectoryProcess process{pid, std::move(*page), {}};
  if (what == Ask::kEntries) {
    const auto dump = take_dump(socket, deadline);
    if (!dump) return silent(dump.error());
    process.entries = parse_dump(*dump);
  }
  survey.processes.push_back(std::move(process));
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (;;) {
    const auto tab = line.find('\t');
    words.emplace_back(line.substr(0, tab));
    if (tab == std::string_view::npos) return words;
    line.remove_prefix(tab + 1);
  }
}

}  // namespace

std::vector<DirectoryEntry> parse_dump(std::string_view text) {
  std::vector<DirectoryEntry> entries;
  std::vector<std::string> names;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (names.empty()) {
      names = words;
    } else if (words.size() == names.size()) {
      DirectoryEntry& entry = entries.emplace_back();
      for (std::size_t i = 0; i < names.size(); ++i) entry.emplace(names[i], words[i]);
    }
  }
  return entries;
}

Result<DirectorySurvey> survey_directories(Ask what, std::uint32_t pid, Duration patience) {
  const auto lines = listed_sockets();
  if (!lines) return tl::make_unexpected(lines.error());
  DirectorySurvey survey;
  for (const std::string& line : *lines) {
    const auto socket = host::parse_listening_socket(line);
    const auto name = socket ? host::parse_report_name(socket->name) : std::nullopt;
    if (name) add(survey, what, *name, pid, patience);
  }
  if (pid != 0 && survey.processes.empty() && survey.shortage) return tl::make_unexpected(*survey.shortage);
  if (pid != 0 && survey.processes.empty() && survey.silent.empty()) {
    return failure(ErrorCode::kNotFound,
                   fmt::format("process {} shows no address-handle directory in this network namespace", pid));
  }
  std::sort(survey.processes.begin(), survey.processes.end(),
            [](const DirectoryProcess& a, const DirectoryProcess& b) { return a.pid < b.pid; });
  return survey;
}

}  // namespace verbena::cli
