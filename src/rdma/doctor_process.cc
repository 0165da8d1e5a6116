#include "rdma/doctor_process.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rdma/doctor_finding.h"

namespace verbena::rdma {
namespace {

namespace fs = std::filesystem;

constexpr ino_t kInitialPidNamespace = 0xeffffffc;  // what the kernel numbers the first one

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool has(std::uint64_t capabilities, int which) {
  return (capabilities >> which & 1U) != 0;
}

std::optional<std::uint64_t> limit_of(int resource, bool& known) {
  rlimit limit{};
  known = ::getrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0;
  if (!known || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

// "0100007F" or its four-fold: words in host order.
std::optional<std::string> address_from_hex(std::string_view hex) {
  if (hex.size() != 8 && hex.size() != 32) return std::nullopt;
  Gid gid{};
  if (hex.size() == 8) gid.bytes[10] = gid.bytes[11] = 0xff;
  for (std::size_t word = 0; word < hex.size() / 8; ++word) {
    std::uint32_t value = 0;
    const auto part = hex.substr(word * 8, 8);
    if (std::from_chars(part.data(), part.data() + part.size(), value, 16).ec != std::errc()) return std::nullopt;
    const std::size_t at = hex.size() == 8 ? 12 : word * 4;
    for (std::size_t i = 0; i < 4; ++i) gid.bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
  }
  return address_text(gid);
}

std::optional<PortHolder> read_udp_line(const std::string& line, std::uint16_t port) {
  std::istringstream words(line);
  std::string slot, local, remote, state, queues, timer, retransmits;
  PortHolder holder;
  long timeout = 0;
  if (!(words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> holder.uid >> timeout >>
        holder.inode)) {
    return std::nullopt;
  }
  const std::size_t colon = local.find(':');
  if (colon == std::string::npos) return std::nullopt;
  std::uint16_t number = 0;
  std::from_chars(local.data() + colon + 1, local.data() + local.size(), number, 16);
  const auto address = address_from_hex(std::string_view(local).substr(0, colon));
  if (number != port || !address) return std::nullopt;
  holder.address = *address;
  return holder;
}

// Whether one of the process' descriptors is this socket.
bool holds(const fs::path& process, const std::string& socket) {
  std::error_code error;
  for (fs::directory_iterator entry(process / "fd", error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unreadable;
    if (fs::read_symlink(entry->path(), unreadable) == socket) return true;
  }
  return false;
}

void find_owners(std::vector<PortHolder>& holders) {
  if (holders.empty()) return;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    for (PortHolder& holder : holders) {
      if (holder.pid != 0 || !holds(entry->path(), fmt::format("socket:[{}]", holder.inode))) continue;
      std::from_chars(name.data(), name.data() + name.size(), holder.pid);
      holder.process = read_file(entry->path() / "comm");
      holder.process.erase(holder.process.find_last_not_of('\n') + 1);
    }
  }
}

}  // namespace

std::vector<PortHolder> read_udp_table(std::string_view text, std::uint16_t port) {
  std::vector<PortHolder> holders;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (auto holder = read_udp_line(line, port)) holders.push_back(std::move(*holder));
  }
  return holders;
}

std::uint64_t read_effective_capabilities(std::string_view status) {
  constexpr std::string_view kKey = "CapEff:";
  const std::size_t at = status.find(kKey);
  if (at == std::string_view::npos) return 0;
  std::string_view rest = status.substr(at + kKey.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  std::uint64_t capabilities = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), capabilities, 16);
  return capabilities;
}

ProcessFacts gather_process() {
  ProcessFacts process;
  process.uid = ::geteuid();
  process.memlock_bytes = limit_of(RLIMIT_MEMLOCK, process.memlock_known);
  bool known = false;
  process.files = limit_of(RLIMIT_NOFILE, known);
  const std::uint64_t capabilities = read_effective_capabilities(read_file("/proc/self/status"));
  process.ipc_lock = has(capabilities, CAP_IPC_LOCK);
  process.net_raw = has(capabilities, CAP_NET_RAW);
  process.sys_ptrace = has(capabilities, CAP_SYS_PTRACE);
  std::istringstream map(read_file("/proc/self/uid_map"));
  std::uint64_t inside = 0, outside = 0, count = 0;
  if (map >> inside >> outside >> count) process.in_user_namespace = inside != 0 || outside != 0 || count != 0xffffffff;
  // Within a user namespace the capability does not lift the limit that the system counts.
  process.ipc_lock = process.ipc_lock && !process.in_user_namespace;
  if (const std::string scope = read_file("/proc/sys/kernel/yama/ptrace_scope"); !scope.empty()) {
    process.ptrace_scope = scope.front() - '0';
  }
  return process;
}

std::vector<PortHolder> gather_port_holders(std::uint16_t port) {
  std::vector<PortHolder> holders = read_udp_table(read_file("/proc/self/net/udp"), port);
  for (PortHolder& holder : read_udp_table(read_file("/proc/self/net/udp6"), port))
    holders.push_back(std::move(holder));
  find_owners(holders);
  return holders;
}

std::string holder_in_words(const PortHolder& holder) {
  if (holder.pid != 0) {
    const std::string name = holder.process.empty() ? "" : fmt::format(" ({})", holder.process);
    return fmt::format("process {}{} of user {}", holder.pid, name, holder.uid);
  }
  return fmt::format("user {}, no process that can be seen from here", holder.uid);
}

bool sees_all_processes() {
  struct stat status {};
  return ::geteuid() == 0 && ::stat("/proc/self/ns/pid", &status) == 0 && status.st_ino == kInitialPidNamespace;
}

}  // namespace verbena::rdma
