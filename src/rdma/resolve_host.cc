// Asking the name service with a deadline.
//
// getaddrinfo(3) has no timeout of its own and may take half a minute. So it runs on a thread that nobody waits for:
// who asked waits on the outcome, until his deadline. A name has one such thread at a time, and a process a bounded
// number.
#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include "rdma/destination_text.h"
#include "rdma/verbs_error.h"
#include "verbena/resolve.h"

namespace verbena {

namespace {

constexpr std::size_t kMostQuestions = 32;

using Outcome = Result<std::vector<HostAddress>>;

struct Question {
  std::optional<Outcome> outcome;  // guarded by Desk::mutex
};

struct Desk {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::shared_ptr<Question>> open;  // guarded by mutex; those without an outcome
};

// Never destroyed: a question may outlive the end of main.
Desk& desk() {
  static Desk* const instance = new Desk;
  return *instance;
}

tl::unexpected<Error> no_addresses(const std::string& name, int code, int system_errno) {
  const std::string why = code == EAI_SYSTEM ? std::strerror(system_errno) : ::gai_strerror(code);
  if (code == EAI_NONAME || code == EAI_NODATA || code == EAI_ADDRFAMILY) {
    return failure(ErrorCode::kNotFound,
                   fmt::format("host \"{}\" is not known: {}; check the spelling, /etc/hosts and the DNS", name, why));
  }
  return failure(
      ErrorCode::kUnavailable,
      fmt::format("the name service does not answer for host \"{}\": {}; check /etc/resolv.conf, or give the "
                  "address",
                  name, why),
      code == EAI_SYSTEM ? system_errno : 0);
}

std::optional<HostAddress> address_of(const addrinfo& info) {
  HostAddress address;
  if (info.ai_family == AF_INET && info.ai_addrlen >= sizeof(sockaddr_in)) {
    sockaddr_in ipv4{};
    std::memcpy(&ipv4, info.ai_addr, sizeof ipv4);
    address.gid = Gid::from_ipv4(ntohl(ipv4.sin_addr.s_addr));
    return address;
  }
  if (info.ai_family == AF_INET6 && info.ai_addrlen >= sizeof(sockaddr_in6)) {
    sockaddr_in6 ipv6{};
    std::memcpy(&ipv6, info.ai_addr, sizeof ipv6);
    std::memcpy(address.gid.bytes.data(), &ipv6.sin6_addr, address.gid.bytes.size());
    if (address.gid.is_link_local()) address.netdev = ipv6.sin6_scope_id;
    return address;
  }
  return std::nullopt;
}

Outcome ask_name_service(const std::string& name) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  if (const int code = ::getaddrinfo(name.c_str(), nullptr, &wanted, &list); code != 0) {
    return no_addresses(name, code, errno);
  }
  std::vector<HostAddress> addresses;
  for (const addrinfo* info = list; info != nullptr; info = info->ai_next) {
    if (const auto address = address_of(*info)) addresses.push_back(*address);
  }
  ::freeaddrinfo(list);
  return addresses;
}

int rank_of(const HostAddress& address) {
  if (address.gid.is_loopback()) return 2;
  return address.gid.is_link_local() ? 1 : 0;
}

Outcome ranked(const std::string& name, Outcome outcome) {
  if (!outcome) return outcome;
  std::vector<HostAddress> unique;
  for (const HostAddress& address : *outcome) {
    const bool seen = std::find(unique.begin(), unique.end(), address) != unique.end();
    if (!seen && !address.gid.is_zero()) unique.push_back(address);
  }
  if (unique.empty()) return no_addresses(name, EAI_NODATA, 0);
  std::stable_sort(unique.begin(), unique.end(),
                   [](const HostAddress& a, const HostAddress& b) { return rank_of(a) < rank_of(b); });
  return unique;
}

void answer(const std::string& name, const std::shared_ptr<Question>& question, const HostLookup& lookup) {
  Outcome outcome = ranked(name, lookup(name));
  const std::lock_guard lock(desk().mutex);
  question->outcome = std::move(outcome);
  desk().open.erase(name);
  desk().changed.notify_all();
}

// With the signals of the process blocked: they are for its own threads.
Status start(const std::string& name, const std::shared_ptr<Question>& question, const HostLookup& lookup) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  Status started;
  try {
    std::thread([name, question, lookup] { answer(name, question, lookup); }).detach();
  } catch (const std::system_error& error) {
    started = rdma::verbs_failure("thread", "of the name service", error.code().value());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

tl::unexpected<Error> too_late(const std::string& name) {
  return failure(ErrorCode::kTimedOut,
                 fmt::format("the name service has not answered for host \"{}\" in time; check /etc/resolv.conf, give "
                             "the address, or a later deadline",
                             name));
}

}  // namespace

Outcome resolve_host(const std::string& name, Deadline deadline) {
  return resolve_host(name, deadline, ask_name_service);
}

Outcome resolve_host(const std::string& name, Deadline deadline, const HostLookup& lookup) {
  if (name.empty() || name.find('\0') != std::string::npos) {
    return failure(ErrorCode::kInvalidArgument, "a host without a name has no address");
  }
  if (!lookup) return failure(ErrorCode::kInvalidArgument, "lookup is empty; leave it out to ask the name service");
  if (const auto gid = parse_gid(name)) return std::vector<HostAddress>{{.gid = *gid, .netdev = 0}};
  std::unique_lock lock(desk().mutex);
  std::shared_ptr<Question> question;
  if (const auto there = desk().open.find(name); there != desk().open.end()) question = there->second;
  if (!question) {
    if (desk().open.size() >= kMostQuestions) {
      return failure(ErrorCode::kExhausted,
                     fmt::format("host \"{}\" was not asked for: the name service owes {} answers; check "
                                 "/etc/resolv.conf, or give addresses",
                                 name, kMostQuestions));
    }
    question = std::make_shared<Question>();
    desk().open.emplace(name, question);
    if (Status started = start(name, question, lookup); !started) {
      desk().open.erase(name);
      return tl::make_unexpected(started.error());
    }
  }
  desk().changed.wait_until(lock, deadline.when(), [&] { return question->outcome.has_value(); });
  return question->outcome ? *question->outcome : too_late(name);
}

Result<std::vector<Destination>> resolve_destination(std::string_view text, Deadline deadline) {
  Result<rdma::DestinationText> read = rdma::read_destination(text);
  if (!read) return tl::make_unexpected(read.error());
  if (read->host_name.empty()) return std::vector<Destination>{read->destination};
  const Outcome addresses = resolve_host(read->host_name, deadline);
  if (!addresses) return tl::make_unexpected(addresses.error());
  std::vector<Destination> all;
  for (const HostAddress& address : *addresses) {
    Destination destination = read->destination;
    destination.gid = address.gid;
    if (destination.netdev == 0) destination.netdev = address.netdev;
    all.push_back(destination);
  }
  return all;
}

}  // namespace verbena
