// The state behind an AhDirectory: bindings, entries, senders, and the threads that work on them.
//
// Who does what:
//   application threads   ask (acquire), under mutex_ for a moment; never call the device
//   senders               read table_ and stamp (send_queue.h); take no lock
//   pool threads          resolve, create, reclaim under pressure (core_create.cc, core_reclaim.cc)
//   the keeper thread     sweeps what is retired, reclaims what is idle, tries again what failed (core_keep.cc)
//   watchers' threads     put addresses in doubt (core_events.cc, core_network.cc)
//   the announcer         calls the application back (announcer.h)
// mutex_ is never held over a verbs call, a route look-up or a wait. Order: sweep_mutex_ or
// own_mutex_, mutex_, senders_mutex_; the mutexes of attempts and of the pool are innermost.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <infiniband/verbs.h>

#include "ah/ah_key.h"
#include "ah/announcer.h"
#include "ah/arbiter.h"
#include "ah/attempt.h"
#include "ah/attributes.h"
#include "ah/binding.h"
#include "ah/holding.h"
#include "ah/lookup_table.h"
#include "ah/path.h"
#include "ah/report_server.h"
#include "ah/send_queue.h"
#include "ah/slab_pool.h"
#include "ah/work_pool.h"
#include "rdma/device_kind.h"
#include "rdma/event_watcher.h"
#include "verbena/address_directory.h"
#include "verbena/call_site.h"
#include "verbena/network_watcher.h"

namespace verbena::ah {

// The end of a chain in Core's index.
inline constexpr std::uint32_t kNoSlot = ~std::uint32_t{0};

// Thread-safety: any thread, but where a comment says otherwise.
// Ownership:     shared by the directory and everything it handed out; owns bindings, entries and threads.
// Errors:        as AhDirectory.
class Core : public std::enable_shared_from_this<Core> {
 public:
  struct Parts {
    ibv_pd* domain = nullptr;
    Keeper domain_keeper;  // null where the application keeps it
    PortFacts facts;
    std::string device;
    rdma::DeviceKind kind = rdma::DeviceKind::kHardware;
    std::size_t max_entries = 0;
    std::shared_ptr<const Seat> seat;
    std::shared_ptr<Account> account;
    AhDirectoryOptions options;
  };

  // What a tenant is charged for a destination and its address handle, with the places in tables: the bound that the
  // documentation states and Memory.* tests.
  static constexpr std::size_t kDestinationBytes = 256;

  static Result<std::shared_ptr<Core>> create(ibv_pd* domain, Keeper domain_keeper, std::uint8_t port,
                                              AhDirectoryOptions options, std::shared_ptr<Account> account = {});
  explicit Core(Parts parts);
  Status watch();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core();

  // core_acquire.cc
  Result<AhHandle> acquire(const Destination& destination, Deadline deadline, const CallSite& place);
  AhTicket acquire_async(const Destination& destination, const CallSite& place);
  std::size_t prewarm(std::span<const Destination> destinations);
  AhHandle find(const Destination& destination, const CallSite& place);
  Result<AhHandle> settle(const Attempt& attempt, Deadline deadline, const CallSite& place);
  Status on_ready(const std::shared_ptr<Attempt>& attempt, const CallSite& place,
                  std::function<void(Result<AhHandle>)> callback);
  Result<AhLease> lease(Binding& binding, const CallSite& place);
  bool is_superseded(const Entry& entry);
  Result<AhSender> make_sender(const CallSite& place);
  // It has no owner any more; what is in flight is reported.
  void drop_sender(const std::shared_ptr<SendQueue>& queue);
  bool charge_sender(std::size_t bytes);
  void retire_sender(const std::shared_ptr<SendQueue>& queue);
  Result<Destination> reply_to(const ibv_wc& completion, std::span<const std::byte, 40> grh);
  // `own`: the addresses of the device.
  Result<Destination> reply_from(const ibv_wc& completion, std::span<const std::byte, 40> grh,
                                 const std::vector<GidEntry>& own) const;
  // Null where they could not be read so far. Requires: inside a section of a sender, which what it points to outlives.
  // Acquire: partner of the release in read_own().
  const std::vector<GidEntry>* own() const noexcept { return own_.load(std::memory_order_acquire); }

  // core_events.cc
  void on_async_event(const ibv_async_event& event);
  Result<Announcer::Ticket> subscribe(AhSubscriber subscriber);
  void unsubscribe(Announcer::Ticket ticket);

  // core_network.cc
  void on_network_change(const NetworkChange& change);

  // core_report.cc
  PortSpeed port_speed() const;  // 0 where the device does not say, or the directory has closed; asks the device
  Result<EffectiveAddress> effective(const Binding& binding);
  // What the device is known to change without telling.
  void add_untold_changes(EffectiveAddress& address) const;
  AhStats stats();
  std::vector<AhRow> rows();

  // core_hold.cc
  std::vector<AhHolding> leaks(std::chrono::nanoseconds held_longer_than);
  AhSenderRest rest_of(const SendQueue& queue);

  // core_keep.cc
  AhLeftover close(Deadline deadline);
  // close(close_grace), then ends the threads and reports what is left. By one thread, once.
  void shut_down();

  // For another account of the device, or another directory of the same, by its threads.
  std::size_t give_idle(const Arbiter::Call& call);
  // Where a close() left nothing that needs the domain: that may go before this does.
  void let_go_of_domain();

  const std::string& name() const noexcept { return name_; }
  const PortFacts& facts() const noexcept { return facts_; }

 private:
  using Lock = std::unique_lock<std::mutex>;

  struct Asked {
    Binding* ready = nullptr;          // usable at once
    std::shared_ptr<Attempt> attempt;  // else: wait for it
  };
  // How often the addresses were put in doubt: at all, and so that each must be made anew.
  struct Epoch {
    std::uint64_t any = 0;
    std::uint64_t all = 0;
  };

  // How an attempt is made.
  struct Try {
    bool may_look_again = true;  // at the GID table, where the device refuses
    bool paid = false;           // a creation was taken from the account's rate for it
  };
  // An attempt that waits for the account's rate.
  struct Parked {
    Binding* binding;
    Try how;
  };

  // An address that the kernel removed a moment ago. The device may not know yet.
  struct Removed {
    Gid address;
    std::uint32_t netdev;
    std::int64_t until_ns;  // from then on the table of the device has the last word
    friend bool operator==(const Removed&, const Removed&) = default;
  };

  // What the neighbour table said: whether it could be asked, and its answer.
  struct Neighbour {
    bool known = false;
    std::optional<MacAddress> mac;
  };

  // A call into the device by who is no thread of the pool: while it lives, close() waits, and the domain stays. Made
  // without mutex_. False where the directory has closed: then no call may be made.
  class Visit {
   public:
    explicit Visit(const Core& core);
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    ~Visit();
    explicit operator bool() const noexcept { return open_; }

   private:
    const Core& core_;
    bool open_ = false;
  };

  static std::int64_t now_ns() noexcept;
  void show();  // core.cc; to others, by the report server

  // core_acquire.cc; all require mutex_.
  Asked ask(const Destination& destination);
  AhHandle adopt(Binding& binding, const CallSite& place);
  Binding* make_binding(const DestinationKey& key);
  bool charge(Binding& binding);
  bool may_wait_for_memory();
  Error no_room_for(const DestinationKey& key) const;
  Error no_memory_for(const DestinationKey& key) const;
  void start_attempt(Binding& binding, Lane lane, AhCause cause);
  static Lane lane_of(const Binding& binding);
  Error unavailable() const;  // closed, or the device is gone
  Error still_failing(const Binding& binding, std::int64_t now) const;

  // core_create.cc; run by the pool, without mutex_ but where a lock is passed or said.
  void run_attempt(Binding& binding, Try how);
  bool pay_for(Binding& binding);  // false: it has failed
  Result<Resolved> resolve_now(const DestinationKey& key);
  std::vector<Removed> removed_now();
  // The entry to create, or null: shared, or waiting for another's creation, or failed; then nothing is left to do.
  // Or waiting for the account's rate. `how.paid` falls where it is used.
  Entry* reserve(Binding& binding, Resolved&& resolved, const Neighbour& neighbour, Epoch begun, Try& how);
  // Requires: mutex_
  Entry* share(Binding& binding, const Resolved& resolved, const Neighbour& neighbour, Epoch begun);
  // Requires: mutex_, a free slot
  Entry* new_entry(Binding& binding, Resolved&& resolved, const Neighbour& neighbour);
  Neighbour ask_neighbour(const NextHop& hop) const;
  Status create_address(Binding& binding, Entry& entry);
  Status take_grant(Binding& binding, std::optional<Deadline>& patience);
  // `link`: the port's own MAC address before the device was asked.
  void on_created(Binding& binding, Entry& entry, Epoch begun, const Neighbour& neighbour,
                  const std::optional<MacAddress>& link);
  void on_refused(Binding& binding, Entry& entry, const Error& error, bool may_look_again);
  std::vector<Binding*> take_claimants(Binding& binding, Entry& entry);  // Requires: mutex_
  void discard(Entry& entry);                                            // Requires: mutex_, never published
  void publish(Binding& binding, Entry& entry);                          // Requires: mutex_
  bool make_anew(Binding& binding, const Error& error);                  // Requires: mutex_
  void fail(Binding& binding, Error error, const Gid& next_hop = {});    // Requires: mutex_
  void conclude(Binding& binding, std::optional<Error> error);           // Requires: mutex_
  std::int64_t back_off_ns(const Binding& binding) const;
  void keep_within_age(Entry& entry);  // Requires: mutex_
  // What an entry need not keep; all require mutex_.
  Destination asked(const Entry& entry) const;  // as far as the device was told
  AhKey ah_key_of(const Entry& entry) const;
  NextHop hop_of(const Entry& entry) const;
  std::int64_t due_ns_of(const Entry& entry) const;  // when it is made anew, whatever happened
  Entry* find_entry(const AhKey& key) const;
  std::uint32_t& index_head(const AhKey& key) { return index_[AhKeyHash{}(key) & (index_.size() - 1)]; }

  // core_reclaim.cc
  bool is_unheld(const Binding& binding) const;  // Requires: mutex_
  bool is_unused(const Entry& entry) const;      // Requires: mutex_
  bool is_in_flight(const Entry& entry) const;
  std::uint64_t stamps_of(const Entry& entry) const;          // the sum of its slot's
  bool was_used(const Entry& entry) const;                    // since the last scan; Requires: mutex_
  void note_activity(std::int64_t now);                       // Requires: mutex_
  std::vector<Entry*> idle_entries(std::int64_t idle_since);  // Requires: mutex_; longest idle first
  std::size_t reclaim(std::size_t most, std::int64_t idle_since, AhCause cause);  // Requires: mutex_
  void evict(Entry& entry, AhCause cause);                                        // Requires: mutex_, unused
  void unlink(Binding& binding);                                                  // Requires: mutex_
  void leave(Binding& binding, Entry& entry);  // Requires: mutex_, no longer pointing to it
  void detach(Entry& entry);                   // Requires: mutex_; no longer found by its key
  // Requires: mutex_; the last that pointed to it had this key.
  void retire(Entry& entry, const DestinationKey& key);
  void destroy(Entry& entry);     // Requires: mutex_, nothing points to it and it is off the device
  void forget(Binding& binding);  // Requires: mutex_, unheld, unlinked
  enum class Trim {
    kUnwanted,  // what is tried again of itself stays
    kAny,       // unwanted ones first
  };
  std::size_t trim_negative(Trim which);  // Requires: mutex_; how many
  enum class Shortage {
    kSlot,    // max_entries of this directory
    kMemory,  // of the account
    kBudget,  // of the account's address handles
    kGrant,   // of the device's, as the arbiter counts them
    kDevice,  // the device refused
  };
  static Deadline room_deadline();
  // False where `enough` (asked under mutex_) did not come true in time, or the directory closes. `shortage` may change
  // by it.
  bool make_room(const std::function<bool()>& enough, Binding& for_whom, const Shortage& shortage, Deadline deadline);
  std::size_t ask_for_room(Shortage shortage, std::size_t most);
  std::size_t ask_siblings(Shortage shortage, std::size_t most);
  void give_up_stale(Binding& binding);               // Requires: mutex_
  bool may_create(const Binding& binding, Try& how);  // Requires: mutex_
  void park(Binding& binding, Try how);               // Requires: mutex_
  void queue_parked(std::int64_t wait_ns);            // Requires: mutex_
  void run_parked();
  std::string no_room_in_words(Shortage shortage) const;
  void grace();
  void make_senders_fence();
  std::size_t sweep();
  std::vector<std::shared_ptr<SendQueue>> senders() const;

  // core_events.cc
  void doubt(bool all, AhCause cause);
  void revalidate();
  void look_at_table();
  // The table of the device, published for the senders. By pool threads, and once before there are any. `changed`:
  // since the last reading, whoever did it.
  Result<GidEntries> read_own(bool& changed);
  // All below require mutex_.
  void doubt_each(AhCause cause);  // by the look that is queued next
  enum class Revalidate {
    kEntries,   // and where the table has changed, what failed
    kFailures,  // too, whatever the table says
  };
  void queue_revalidate(Revalidate what);
  void refresh(Entry& entry, AhCause cause);  // made anew
  void recheck(Entry& entry, AhCause cause);  // resolved anew, and made anew only where the outcome differs
  // Its source is gone: no look-up finds it from now on, and another is made where one can be.
  void let_go(Entry& entry, AhCause cause);
  void count_stale(AhCause cause);
  static bool each_binding(const Binding& /*binding*/) { return true; }
  void outdate_attempts(const std::function<bool(const Binding&)>& concerned);
  void forgive_failed(const std::function<bool(const Binding&)>& concerned);
  void announce(AhEvent::Kind kind, const Binding& binding, AhCause cause, const Error* error = nullptr);
  bool is_wanted(const Binding& binding, std::int64_t now) const;  // to be tried again without being asked

  void give_up_device();

  // core_network.cc; all require mutex_ but the last.
  void on_neighbour(const NetworkChange& change);
  void on_neighbour(Entry& entry, const NetworkChange& change);
  void outdate_attempt_of(Entry& entry);
  void expect_no_notice(Entry& entry);  // of its next hop: it is made anew after a while
  void on_route(const NetworkChange& change);
  void on_address(const NetworkChange& change);
  static bool is_among(const std::vector<Removed>& removed, const GidEntry& source);
  void on_link(const NetworkChange& change);
  void revalidate_later(Revalidate what);
  void look_later();
  void queue_look(std::int64_t now);
  void on_notices_lost();
  bool is_of_port(std::uint32_t netdev) const;
  bool is_own_link_new(std::uint32_t netdev, const MacAddress& mac);
  void recheck_links();
  std::optional<MacAddress> learn_link(std::uint32_t netdev);  // without mutex_

  // core_keep.cc
  void keep();
  std::int64_t tick();                    // until the next, in ns
  void reclaim_aged(std::int64_t now);    // Requires: mutex_
  void forget_unasked(std::int64_t now);  // Requires: mutex_
  void refresh_aged(std::int64_t now);    // Requires: mutex_
  void retry_failed(std::int64_t now);    // Requires: mutex_
  void stop_listening();
  bool has_calls_under_way();  // Requires: mutex_, closed_
  void leave_arbiter();
  void poke_keeper();

  // core_hold.cc
  AhLeftover leftover();
  std::vector<AhSenderRest> rests();
  std::vector<AhHolding> holdings(std::int64_t now, std::chrono::nanoseconds at_least) const;  // Requires: mutex_
  void note_longest(AhRow& row, const Binding& binding, std::int64_t now) const;               // Requires: mutex_
  void note_longest(AhRow& row, const Entry& entry, std::int64_t now) const;                   // Requires: mutex_
  void name_what_stays();

  // core_report.cc; require mutex_
  AhRow row_of(const Binding& binding, std::int64_t now) const;
  AhRow row_of(const Entry& entry, std::int64_t now) const;

  // Constant after construction.
  ibv_pd* const domain_;
  Keeper domain_keeper_;  // constant until let_go_of_domain()
  const PortFacts facts_;
  const std::string device_;
  const rdma::DeviceKind kind_;
  const AhDirectoryOptions options_;
  const std::string name_;
  const std::size_t max_entries_;
  const std::shared_ptr<Arbiter> arbiter_;
  const std::shared_ptr<Account> account_;
  const std::uint64_t seed_;  // of everything that this directory draws
  std::atomic<bool> light_;   // see SendQueue::light; falls under senders_mutex_

  GidTable gids_;
  // The addresses of the device as last read, for the senders: replaced whole, and the old one freed after a grace
  // period. Release in read_own(); partner: the acquire load in own().
  std::atomic<const std::vector<GidEntry>*> own_{nullptr};
  std::mutex own_mutex_;  // one reading at a time; taken before mutex_
  GidEntries own_kept_;   // what own_ points to; guarded by own_mutex_

  mutable std::mutex mutex_;
  LookupTable table_;  // written under mutex_
  // Guarded by mutex_, down to the next blank line.
  SlabPool<Binding> binding_pool_;
  SlabPool<Entry> entry_pool_;
  Paths paths_;
  std::vector<std::uint32_t> index_;  // by AhKey: slots, by Entry::next_in_index; kCreating, or kReady and not stale
  std::unordered_map<const Entry*, std::vector<Binding*>> waiters_;  // while kCreating: who else wants it
  std::unordered_map<const Entry*, DestinationKey> parted_;          // of retired ones: what they were for
  std::unordered_map<const Entry*, ibv_ah_attr> made_as_;            // where the device changed what it was given
  std::unordered_map<const Entry*, std::string> release_errors_;     // of retired ones that the device kept: the last
  std::vector<Entry*> by_slot_;                                      // all entries; null where free
  std::vector<std::uint32_t> hop_tags_;  // by slot: what the next hop hashes to; 0: it has none
  std::vector<std::uint32_t> free_slots_;
  std::vector<Entry*> retired_;
  std::vector<Binding*> forgotten_;
  Holdings handle_holdings_;    // by binding, which has the first itself
  Holdings lease_holdings_;     // by entry
  std::size_t sweeping_ = 0;    // retired entries that a sweep has in its hands
  std::size_t trim_above_ = 0;  // bindings with Trouble, before the next trim
  std::size_t unwell_ = 0;      // bindings with Trouble
  std::size_t under_way_ = 0;   // bindings with an Attempt
  std::size_t unpaid_ = 0;      // bindings in table_ that are not charged
  Epoch epoch_;
  bool revalidate_queued_ = false;
  AhCause table_cause_ = AhCause::kGid;        // of what the queued one finds in the table
  bool revalidate_failures_ = false;           // the queued one looks at what failed too
  bool revalidate_failures_later_ = false;     // so does the one at next_revalidate_ns_
  std::uint64_t revalidate_before_ = 0;        // the queued one makes anew what was begun before this Epoch::all
  AhCause revalidate_cause_ = AhCause::kNone;  // why; the first since the last look
  std::vector<Removed> removed_;
  std::vector<std::uint32_t> port_netdevs_;  // of the GIDs of the port, as last read
  // This host's own, as last heard, of the interfaces that entries leave by.
  std::unordered_map<std::uint32_t, MacAddress> link_macs_;
  std::deque<Parked> parked_;        // creations that wait for the account's rate
  std::deque<Parked> parked_stale_;  // the same, of what replaces something stale: by turns with the others
  bool stale_had_turn_ = false;
  bool parked_queued_ = false;  // run_parked() is queued
  bool closed_ = false;
  bool device_gone_ = false;
  mutable std::size_t visits_ = 0;    // that live
  std::shared_ptr<const Seat> seat_;  // null where it has left the arbiter
  AhStats counts_;                    // events only; what is there now is counted when asked for
  std::int64_t next_aged_scan_ns_ = kNever;
  std::int64_t next_retry_ns_ = kNever;
  std::int64_t next_due_ns_ = kNever;
  std::int64_t next_revalidate_ns_ = kNever;
  std::int64_t next_look_ns_ = kNever;  // at the table, because of other interfaces than the port's
  std::int64_t other_heard_ns_ = 0;     // the last notice of one
  std::int64_t next_own_ns_ = kNever;   // the next try to read the addresses of the device
  std::condition_variable room_;        // something was destroyed, or the directory closes

  mutable std::mutex senders_mutex_;
  std::vector<std::shared_ptr<SendQueue>> senders_;  // guarded by senders_mutex_
  std::uint64_t past_hits_ = 0;                      // of senders that are gone; guarded by senders_mutex_
  std::uint64_t past_misses_ = 0;
  std::uint64_t past_misused_ = 0;

  std::mutex sweep_mutex_;  // one sweep at a time

  std::mutex keeper_mutex_;
  std::condition_variable keeper_wake_;
  bool keeper_poked_ = false;  // guarded by keeper_mutex_
  bool keeper_ends_ = false;   // guarded by keeper_mutex_

  std::shared_ptr<rdma::EventWatcher> watcher_;
  rdma::EventWatcher::Ticket watch_ = 0;
  std::shared_ptr<ReportServer> report_server_;  // null: not shown
  ReportServer::Ticket shown_ = 0;
  std::shared_ptr<NetworkWatcher> network_;
  NetworkWatcher::Ticket network_watch_ = 0;
  Announcer announcer_;
  WorkPool pool_;
  std::thread keeper_;
};

}  // namespace verbena::ah
