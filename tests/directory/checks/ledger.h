// Every address handle of this process, as ibv_create_ah made it and ibv_destroy_ah took it, and the sends that name
// it. A program that links ledger.cc has both calls seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include <infiniband/verbs.h>

namespace verbena::on_device {

// Thread-safety: any thread.
// Ownership:     keeps pointers that it does not follow.
// Errors:        counts them.
class Ledger {
 public:
  // The one that both calls write to.
  static Ledger& of_this_process();

  // Calls of ibv_create_ah.
  void begin_creation();
  void end_creation(const ibv_ah* address, const ibv_ah_attr& attributes);  // null: it failed
  void gone(const ibv_ah* address);

  // A send that names it was posted, and has completed.
  void posted(const ibv_ah* address);
  void completed(const ibv_ah* address);

  // As given to ibv_create_ah. Requires: it is alive.
  ibv_ah_attr attributes(const ibv_ah* address) const;
  std::size_t alive() const;
  std::uint64_t created() const;
  // The most that were alive, and the most creations that were under way at once, since this was last asked.
  std::size_t take_most_alive();
  std::size_t take_most_creations();
  // Handles that were destroyed while a posted send named them, or named by a send when they were gone already.
  std::uint64_t violations() const;

 private:
  struct Record {
    ibv_ah_attr attributes{};
    std::uint64_t posted = 0;
  };

  mutable std::mutex mutex_;
  std::unordered_map<const ibv_ah*, Record> alive_;  // guarded by mutex_, as all
  std::size_t most_alive_ = 0;
  std::size_t creations_ = 0;
  std::size_t most_creations_ = 0;
  std::uint64_t created_ = 0;
  std::uint64_t violations_ = 0;
};

}  // namespace verbena::on_device
