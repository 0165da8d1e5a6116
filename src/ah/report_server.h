// Shows the address-handle directories of this process to who asks from outside (host/report_name.h): counts in shared
// memory, entries as lines.
//
// One server a process, there as long as there is a directory. Its thread sleeps until somebody connects; the values in
// the page are brought up to date when one asks, so that the data path never writes them.
//
// Thread-safety: any thread.
// Ownership:     shared by the directories; owns its socket, its memory and its thread.
// Errors:        kExhausted where the process has no descriptor, memory or thread left.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "ah/report_text.h"
#include "host/counter_page.h"
#include "rdma/descriptor.h"
#include "verbena/ah_report.h"
#include "verbena/deadline.h"
#include "verbena/result.h"

namespace verbena::ah {

using rdma::Descriptor;

// What it asks of a directory. Called on the server's thread.
struct ReportSource {
  std::string name;
  std::function<AhStats()> stats;
  std::function<std::vector<AhRow>()> rows;
  const void* account = nullptr;  // its tenant's; null or of no tenant: only itself
};

// What it asks of a tenant: the counts are those of its directories, those that are gone included.
struct TenantSource {
  std::string name;
  std::function<TenantBudget()> budget;
  const void* account = nullptr;
};

class ReportServer {
 public:
  using Ticket = std::uint64_t;

  // The one of this process, started where there is none.
  static Result<std::shared_ptr<ReportServer>> of_this_process();

  ReportServer(const ReportServer&) = delete;
  ReportServer& operator=(const ReportServer&) = delete;
  ~ReportServer();

  Ticket add(ReportSource source);
  // Before its directories.
  Ticket add(TenantSource source);
  // When it returns, the source is not being asked and will not be again. What it counted stays in the page, marked as
  // ended, until another takes its place; of what it had there is nothing left.
  void remove(Ticket ticket);

 private:
  struct Shown {
    ReportSource source;
    host::CounterBlock block;  // empty where the page is full
  };
  struct ShownTenant {
    TenantSource source;
    host::CounterBlock block;  // the same
    AhStats past;              // what happened in directories that are gone
  };

  ReportServer() = default;
  Status start();
  Status listen();
  Status make_page();
  void run();
  void accept_one();
  // False where the connection is to end.
  bool answer(const Descriptor& client);
  bool send_page(const Descriptor& client);
  bool send_dump(const Descriptor& client);
  bool send_in_time(const Descriptor& client, const char* bytes, std::size_t size, Deadline deadline) const;
  void refresh();
  std::string dump();
  // All below require mutex_.
  static AhStats refresh(Shown& shown);
  void refresh(ShownTenant& tenant);
  ShownTenant* tenant_of(const void* account);
  std::string free_name(const std::string& wanted) const;
  void end(host::CounterBlock& block, std::span<const CounterRow> rows);

  Descriptor listener_;
  Descriptor wake_;
  Descriptor page_fd_;
  std::span<std::byte> page_;
  std::unique_ptr<host::CounterPageWriter> writer_;  // guarded by mutex_
  std::vector<Descriptor> clients_;                  // the thread's, as the next
  bool listener_rests_ = false;                      // no descriptor was left for who connects
  std::mutex mutex_;
  std::map<Ticket, Shown> shown_;  // guarded by mutex_, as the next
  std::map<Ticket, ShownTenant> tenants_;
  Ticket next_ = 1;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace verbena::ah
