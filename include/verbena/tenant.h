// A tenant of a device: a protection domain with a budget, and everything made in it, released in order at its end.
//
//   auto tenant    = Tenant::create(context, {.name = "trainer", .max_handles = 1000, .creations_per_second = 500});
//   auto directory = tenant->directory(1);
//   ...
//   TenantRelease released = tenant->close(Deadline::in(1s));   // says what was given back, what was left, by whom
//
// ibv_dealloc_pd does not free the address handles of a domain; this does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "verbena/address_directory.h"
#include "verbena/call_site.h"
#include "verbena/deadline.h"
#include "verbena/device.h"
#include "verbena/export.h"
#include "verbena/live_objects.h"
#include "verbena/protection_domain.h"

namespace verbena {

struct TenantOptions {
  std::string name;             // in reports and errors
  std::size_t max_handles = 0;  // address handles on the device, of all its directories; 0: the device's limit
  std::uint64_t creations_per_second = 0;  // up to 1,000,000,000; 0: without limit
  std::uint64_t creation_burst = 64;       // so many at once before the rate holds; 1 or more
  std::size_t max_memory = 0;              // bytes of destinations, address handles and senders; 0: without limit
  std::chrono::nanoseconds close_grace = std::chrono::seconds(1);  // what the destructor waits for work in flight
};

// What a tenant has now.
struct TenantUsage {
  std::size_t handles = 0;  // on the device
  std::size_t share = 0;    // of the device's, as things are: beyond it, others that need room take back what is idle
  std::size_t memory = 0;   // bytes
};

struct VERBENA_API TenantRelease {
  std::uint64_t directories = 0;      // closed
  std::uint64_t address_handles = 0;  // destroyed by this close
  bool domain = false;                // the protection domain is deallocated
  std::vector<AhLeftover> left;  // of directories with work in flight, leases or calls under way: what they still have
  std::vector<LiveObject> leaked;  // memory regions, queue pairs and completion queues still there, with their places
  Status status;                   // why the domain is still there

  bool complete() const noexcept { return domain; }
  // For a log.
  std::string in_words() const;
};

// Thread-safety: all functions, any thread; close() by one at a time.
// Ownership:     move-only. Owns the domain; closes the directories made from it, which may outlive it and then find
//                nothing.
// Errors:        close() tells what is left, and may be called again; the destructor reports it (release_failure.h). An
//                empty one (by default, or moved from) has nothing, and its directory() gives kInvalidArgument.
class VERBENA_API Tenant {
 public:
  // kInvalidArgument for options that make no sense, with the value and what to use.
  static Result<Tenant> create(const Context& context, TenantOptions options, CallSite place = CallSite::current());

  Tenant() = default;
  Tenant(Tenant&&) noexcept = default;
  Tenant& operator=(Tenant&& other) noexcept;
  ~Tenant();

  const std::string& name() const;
  const ProtectionDomain& domain() const;
  Result<AhDirectory> directory(std::uint8_t port, AhDirectoryOptions options = {});
  TenantUsage usage() const;
  // Directories and their address handles, then the domain. Waits for work in flight until the deadline.
  TenantRelease close(Deadline deadline);

 private:
  struct State;
  explicit Tenant(std::unique_ptr<State> state);
  struct Delete {
    void operator()(State* state) const noexcept;
  };
  std::unique_ptr<State, Delete> state_;
};

}  // namespace verbena
