#include "device/runtime.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "device/clock.h"
#include "device/completion_queue.h"
#include "device/environment.h"
#include "device/infiniband_frame.h"
#include "device/log.h"
#include "device/queue_pair.h"
#include "device/rcu.h"
#include "device/wire_frame.h"
#include "wire/infiniband_header.h"

namespace verbena::device {
namespace {

constexpr std::size_t kHelperBudget = 256;
constexpr int kRoundsAtEnd = 64;
constexpr std::size_t kMostBeforeTimers = 16384;
constexpr unsigned kPollsBetweenUdp = 64;
constexpr unsigned kUdpHeat = 256;
constexpr unsigned kPollsToYield = 256;
constexpr unsigned kPollsToNudge = 32;
constexpr Duration kLongTick = std::chrono::milliseconds(4);
constexpr Duration kShortTick = std::chrono::microseconds(500);
constexpr Duration kReopenInterval = std::chrono::seconds(1);

std::mutex& current_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}
std::weak_ptr<Runtime>& current() {
  static auto& runtime = *new std::weak_ptr<Runtime>;  // guarded by current_mutex()
  return runtime;
}
// Between the handlers of one fork; guarded by current_mutex().
std::shared_ptr<Runtime>& quiesced() {
  static auto& runtime = *new std::shared_ptr<Runtime>;
  return runtime;
}

// Once each, however often the file is read.
void tell_vain_words(const SubnetFile& subnet) {
  if (subnet.ports.empty()) return;
  std::vector<SubnetPort> ports;
  for (const auto& device : device_list()) {
    for (std::uint8_t number = kFirstPort; number - kFirstPort < static_cast<int>(device->ports().size()); ++number) {
      const DevicePort& port = device->port(number);
      ports.push_back({device->port_name(number), port.guid, port.infiniband.has_value()});
    }
  }
  for (const std::string& sentence : vain_words(subnet, ports)) log_once(Severity::kWarning, sentence);
}

}  // namespace

Result<std::shared_ptr<Runtime>> Runtime::acquire() {
  const std::lock_guard guard(current_mutex());
  if (auto runtime = current().lock(); runtime && runtime->alive()) return runtime;
  const auto& settings = environment();
  if (!settings) return tl::make_unexpected(settings.error());
  static const int fork_handlers = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  if (fork_handlers != 0) return failure(ErrorCode::kExhausted, "no memory for fork handlers", fork_handlers);
  std::shared_ptr<Runtime> runtime(new Runtime(*settings));
  if (auto started = runtime->start(); !started) return tl::make_unexpected(started.error());
  current() = runtime;
  return runtime;
}

Runtime::Runtime(const Settings& settings) : settings_(settings), injection_(settings.injection) {}

Status Runtime::start() {
  const auto add_block = [this](std::string_view name) -> Result<DeviceCounters> {
    auto block = counter_memory_->add_block(name, DeviceCounters::rows());
    if (!block) return tl::make_unexpected(block.error());
    return DeviceCounters(*block);
  };
  auto memory = transport::CounterMemory::create();
  if (!memory) return tl::make_unexpected(memory.error());
  counter_memory_ = std::move(*memory);
  auto counters = add_block("host");
  if (!counters) return tl::make_unexpected(counters.error());
  host_counters_ = *counters;

  transport::ExchangeOptions options;
  options.slot_offset = static_cast<std::uint32_t>(getpid());
  auto exchange = transport::Exchange::open(options, host_counters_);
  if (!exchange) return tl::make_unexpected(exchange.error());
  exchange_ = std::move(*exchange);
  exchange_->set_counter_page(counter_memory_->fd(), counter_memory_->bytes());
  queue_pairs_.add_slot(exchange_->slot());
  shared_receive_queues_.set_slot(exchange_->slot());

  if (!settings_.pcap.empty()) {
    auto tap = transport::Tap::open(settings_.pcap, host_counters_);
    if (!tap) return tl::make_unexpected(tap.error());
    tap_ = std::move(*tap);
  }
  router_ = std::make_unique<Router>(*exchange_, host_counters_, routes_, settings_.shared_memory);
  if (!settings_.impairment.is_idle()) {
    impair_ = std::make_unique<transport::Impair>(settings_.impairment, *router_, host_counters_);
  }
  inbound_ =
      std::make_unique<Inbound>(*exchange_, queue_pairs_, groups_, routes_, management_, host_counters_, tap_.get());
  if (auto opened = management_.open(); !opened) return opened;

  if (!settings_.subnet_file.empty()) {
    auto watch = FileWatch::open(settings_.subnet_file);
    if (!watch) return tl::make_unexpected(watch.error());
    subnet_watch_ = std::move(*watch);
  }
  auto subnet = read_subnet_file(settings_.subnet_file, settings_.lids);
  if (!subnet) return tl::make_unexpected(subnet.error());
  subnet_ = std::move(*subnet);
  tell_vain_words(subnet_);

  auto netlink = Netlink::open();
  if (!netlink) return tl::make_unexpected(netlink.error());
  netlink_ = std::move(*netlink);
  {
    const std::lock_guard guard(control_);
    if (auto followed = follow_network(); !followed) return followed;
  }
  if (auto started = helper_.start(); !started) return started;
  for (const int fd : {exchange_->fd(), netlink_->fd()}) {
    if (auto added = helper_.add_control(fd); !added) return added;
  }
  if (subnet_watch_ != nullptr) {
    if (auto added = helper_.add_control(subnet_watch_->fd()); !added) return added;
  }
  return {};
}

Runtime::~Runtime() {
  helper_.stop();
  if (alive() && inbound_ != nullptr) {
    // What UDP brought here for other processes is handed to them before the sockets go.
    // Bounded, as a peer may go on sending.
    for (int round = 0; round < kRoundsAtEnd && receive(kHelperBudget, true, false) > 0;) ++round;
  }
  delete routes_.load(std::memory_order_relaxed);
  delete inlets_.load(std::memory_order_relaxed);
  delete groups_.load(std::memory_order_relaxed);
}

Result<std::vector<Port*>> Runtime::open_ports(const Device& device) {
  const std::lock_guard guard(control_);
  const auto opened = [&] {
    std::vector<Port*> ports;
    for (const auto& [port, receiver] : ports_) {
      if (&port->device() == &device) ports.push_back(port.get());
    }
    return ports;
  };
  if (auto ports = opened(); !ports.empty()) return ports;
  auto block = counter_memory_->add_block(device.name(), DeviceCounters::rows());
  if (!block) return tl::make_unexpected(block.error());
  for (std::uint8_t number = kFirstPort; number - kFirstPort < static_cast<int>(device.ports().size()); ++number) {
    if (auto done = open_port(device, number, DeviceCounters(*block)); !done) {
      for (; number > kFirstPort; --number) drop_last_port();
      return tl::make_unexpected(done.error());
    }
  }
  auto ports = opened();
  if (std::any_of(ports.begin(), ports.end(), [](const Port* port) { return port->lacks_udp(); })) helper_.wake();
  return ports;
}

Status Runtime::open_port(const Device& device, std::uint8_t number, DeviceCounters counters) {
  auto port = std::make_unique<Port>(device, number, std::move(counters), settings_.udp);
  port->set_index(static_cast<std::uint16_t>(ports_.size()));
  if (auto done = configure(*port, subnet_); !done) return done;
  auto receiver = std::make_unique<PortReceiver>(*inbound_, *port);
  ports_.emplace_back(std::move(port), std::move(receiver));
  Port& opened = *ports_.back().first;
  auto followed = follow(opened);
  if (followed) return {};
  // A port held by somebody else keeps nobody from looking at the device, or from using it on this host.
  const ErrorCode code = followed.error().code;
  const bool nothing = code != ErrorCode::kBusy && opened.udp_ports().empty();
  if (!nothing && code != ErrorCode::kExhausted) return {};
  drop_last_port();
  return followed;
}

Result<InfinibandPort> Runtime::wanted_configuration(const Port& port, const SubnetFile& subnet) const {
  auto wanted = configured(*port.identity().infiniband, port.name(), subnet);
  if (!wanted) return wanted;
  const auto is_here = [this](const Gid& gid) {
    return std::any_of(network_.begin(), network_.end(), [&gid](const Interface& interface) {
      return std::any_of(interface.addresses.begin(), interface.addresses.end(),
                         [&gid](const auto& address) { return address.gid == gid; });
    });
  };
  for (unsigned lid = wanted->lid; lid <= wanted->last_lid(); ++lid) {
    const auto address = subnet.lids.address_of(static_cast<std::uint16_t>(lid));
    if (!address || is_here(*address)) continue;
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("LID {} is that of a port on {}, as VERBENA_LIDS or VERBENA_SUBNET says, which is no "
                               "address of this host: give the port another lid=, or correct the map",
                               lid, to_string(*address)),
                   EINVAL);
  }
  return wanted;
}

Status Runtime::configure(Port& port, const SubnetFile& subnet) {
  if (!port.is_infiniband()) return {};
  auto wanted = wanted_configuration(port, subnet);
  if (!wanted) return tl::make_unexpected(wanted.error());
  return port.configure(*wanted);
}

// All ports at once, since one may get the LIDs of another. What cannot be is told where `tell`. True where a port has
// another configuration now.
bool Runtime::configure_ports(const SubnetFile& subnet, bool tell) {
  const auto refuse = [tell](const Port& port, const Error& error, std::string_view until) {
    if (tell) log(Severity::kError, fmt::format("{} stays as it was{}: {}", port.name(), until, error.message));
  };
  std::vector<std::pair<Port*, InfinibandPort>> wanted;
  for (const auto& [port, receiver] : ports_) {
    if (!port->configuration()) continue;
    auto one = wanted_configuration(*port, subnet);
    if (!one) refuse(*port, one.error(), "");
    wanted.emplace_back(port.get(), one ? *one : *port->configuration());
    port->give_up_lids(wanted.back().second);
  }
  bool changed = false;
  for (const auto& [port, configuration] : wanted) {
    const bool other = configuration != *port->configuration();
    if (auto done = port->configure(configuration); !done) {
      refuse(*port, done.error(), " until the LIDs are free");
    } else {
      changed |= other;
    }
  }
  return changed;
}

// A file that does not hold changes nothing; the log says why.
void Runtime::follow_subnet() {
  auto subnet = read_subnet_file(settings_.subnet_file, settings_.lids);
  if (!subnet) {
    log(Severity::kError, fmt::format("{} The subnet stays as it was.", subnet.error().message));
    return;
  }
  subnet_ = std::move(*subnet);
  tell_vain_words(subnet_);
  configure_ports(subnet_, true);
  follow_configuration();
}

void Runtime::follow_configuration() {
  publish_routes();
  for (const auto& [port, receiver] : ports_) {
    if (auto followed = follow(*port); !followed) log(Severity::kDebug, followed.error().message);
    if (port->lacks_lids()) try_again_later();
  }
}

void Runtime::try_again_later() noexcept {
  reopen_at_.store((now() + kReopenInterval).ns, std::memory_order_relaxed);
}

void Runtime::drop_last_port() {
  const auto last = std::move(ports_.back());
  ports_.pop_back();
  for (auto* udp_port : last.first->udp_ports()) helper_.remove_packets(udp_port->fd());
  publish_routes();  // nobody reads of it any more when this returns
}

void Runtime::reopen_ports() {
  reopen_at_.store(0, std::memory_order_relaxed);
  bool changed = false;
  bool lids = false;
  for (const auto& [port, receiver] : ports_) {
    if (port->lacks_udp()) changed |= port->reopen();
    lids |= port->lacks_lids();
    if (port->lacks_udp() || port->lacks_lids()) try_again_later();
  }
  if (lids && configure_ports(subnet_, false)) {
    follow_configuration();
  } else if (changed) {
    publish_routes();
  }
}

Status Runtime::follow_network() {
  auto network = netlink_->read();
  if (!network) return tl::make_unexpected(network.error());
  network_ = std::move(*network);
  publish_routes();
  for (const auto& [port, receiver] : ports_) {
    if (auto followed = follow(*port); !followed) log(Severity::kDebug, followed.error().message);
  }
  return {};
}

// No interface is taken from another port that is on it, opened or not, unless both are of InfiniBand.
const Interface* Runtime::interface_of(const Port& port) const {
  const Interface* const interface = port.find_in(network_);
  if (interface == nullptr || interface->index == port.interface_index()) return interface;
  const bool taken = std::any_of(ports_.begin(), ports_.end(), [&](const auto& entry) {
    const Port& other = *entry.first;
    return &other != &port && other.interface_index() == interface->index &&
           !(other.is_infiniband() && port.is_infiniband());
  });
  return taken || is_of_unopened(*interface, port) ? nullptr : interface;
}

// A device that this process has not opened is still on the interface that it was made of: where that is there.
bool Runtime::is_of_unopened(const Interface& interface, const Port& port) const {
  const auto is_other = [&](const DevicePort& declared) {
    if (declared.interface_index != interface.index || &declared == &port.identity()) return false;
    if (declared.infiniband && port.is_infiniband()) return false;
    return std::none_of(ports_.begin(), ports_.end(),
                        [&](const auto& entry) { return &entry.first->identity() == &declared; });
  };
  const auto devices = device_list();
  return std::any_of(devices.begin(), devices.end(), [&](const auto& device) {
    return std::any_of(device->ports().begin(), device->ports().end(), is_other);
  });
}

Status Runtime::follow(Port& port) {
  const Interface* const interface = interface_of(port);
  // It has been deleted and made again since it was looked at: whatever was bound to the old one is not to the new.
  const bool replaced = interface != nullptr && interface->index != port.interface_index();
  if (replaced) {
    if (auto left = follow(port, nullptr); !left) return left;
    log(Severity::kInfo,
        fmt::format("{}: {} is there again, as interface {}", port.name(), interface->name, interface->index));
  }
  const bool returns = interface != nullptr && !port.copy().present;
  // Before the port says that it is active. Also where it is the one that went: to another namespace, and back.
  if (returns) raw_ports_.reopen(port, interface->index);
  return follow(port, interface);
}

Status Runtime::follow(Port& port, const Interface* interface) {
  Status refusal;
  auto change = port.follow(interface, refusal);
  if (change.routes) {
    for (const auto& retired : change.retired) helper_.remove_packets(retired->fd());
    publish_routes();
  }
  if (port.lacks_udp()) try_again_later();
  return refusal;
}

void Runtime::publish_routes() {
  auto routes = std::make_unique<Routes>();
  for (const auto& interface : network_) {
    for (const auto& address : interface.addresses) routes->local.push_back(address.gid);
  }
  routes->lids = subnet_.lids;
  auto inlets = std::make_unique<Inlets>();
  const auto& before = *inlets_.load(std::memory_order_relaxed);
  for (const auto& [port, receiver] : ports_) {
    const bool infiniband = port->is_infiniband();
    routes->infiniband.push_back(infiniband ? port->lid_route() : LidRoute{});
    for (auto* udp_port : port->udp_ports()) {
      if (!infiniband) routes->udp_ports.push_back(udp_port);
      inlets->push_back({udp_port, receiver.get()});
      const bool known =
          std::any_of(before.begin(), before.end(), [&](auto& inlet) { return inlet.udp_port == udp_port; });
      if (known) continue;
      if (auto added = helper_.add_packets(udp_port->fd()); !added) log(Severity::kError, added.error().message);
    }
  }
  const std::unique_ptr<const Routes> old_routes(routes_.exchange(routes.release(), std::memory_order_acq_rel));
  const std::unique_ptr<const Inlets> old_inlets(inlets_.exchange(inlets.release(), std::memory_order_acq_rel));
  wait_for_readers();
}

Result<Qpn> Runtime::reserve_qpn() {
  Qpn qpn;
  if (queue_pairs_.reserve(qpn)) return qpn;
  const std::lock_guard guard(control_);
  if (queue_pairs_.reserve(qpn)) return qpn;
  auto slot = exchange_->claim_another();
  if (!slot) return tl::make_unexpected(slot.error());
  queue_pairs_.add_slot(*slot);
  if (queue_pairs_.reserve(qpn)) return qpn;
  return failure(ErrorCode::kExhausted, "no queue pair number is free in this process", ENOMEM);
}

// --- multicast

Status Runtime::attach(const Gid& group, std::uint16_t lid, QueuePair& queue_pair) {
  return change_groups(group, lid, queue_pair, true);
}
Status Runtime::detach(const Gid& group, std::uint16_t lid, QueuePair& queue_pair) {
  return change_groups(group, lid, queue_pair, false);
}

Status Runtime::change_groups(const Gid& group, std::uint16_t lid, QueuePair& queue_pair, bool attach) {
  const std::lock_guard guard(control_);
  const bool infiniband = queue_pair.port().is_infiniband();
  if (!infiniband) lid = 0;
  if (infiniband && !wire::is_multicast_lid(lid)) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("LID {:#x} is none of multicast, which go from 0xc000 to 0xfffe: {} needs one", lid,
                               to_string(group)),
                   EINVAL);
  }
  const auto& before = *groups_.load(std::memory_order_relaxed);
  auto after = std::make_unique<engine::MulticastTable>(before);
  const auto size = before.members(group).size();
  auto changed = attach ? after->attach(group, queue_pair.qpn(), lid) : after->detach(group, queue_pair.qpn(), lid);
  if (!changed || after->members(group).size() == size) return changed;

  const std::pair key{queue_pair.qpn().value(), group};
  if (attach) {
    const Membership membership = membership_of(queue_pair, group, lid);
    if (auto joined = join(membership); !joined) return joined;
    memberships_[key] = membership;
  } else if (const auto member = memberships_.find(key); member != memberships_.end()) {
    leave(member->second);
    memberships_.erase(member);
  }
  const std::unique_ptr<const engine::MulticastTable> old(groups_.exchange(after.release(), std::memory_order_acq_rel));
  wait_for_readers();
  return {};
}

Runtime::Membership Runtime::membership_of(QueuePair& queue_pair, const Gid& group, std::uint16_t lid) {
  Port& port = queue_pair.port();
  return {.port = &port, .joined = port.is_infiniband() ? carrier_group(lid, true) : group};
}

Status Runtime::join(const Membership& membership) {
  auto& users = group_users_[{membership.port, membership.joined}];
  if (users == 0) {
    if (auto joined = membership.port->join(membership.joined); !joined) {
      group_users_.erase({membership.port, membership.joined});
      return joined;
    }
  }
  ++users;
  return {};
}

void Runtime::leave(const Membership& membership) {
  const auto users = group_users_.find({membership.port, membership.joined});
  if (--users->second > 0) return;
  membership.port->leave(membership.joined);
  group_users_.erase(users);
}

void Runtime::follow_port(QueuePair& queue_pair) {
  const std::lock_guard guard(control_);
  const auto& groups = *groups_.load(std::memory_order_relaxed);
  for (auto& [key, membership] : memberships_) {
    if (key.first != queue_pair.qpn().value() || membership.port == &queue_pair.port()) continue;
    const Membership wanted = membership_of(queue_pair, key.second, groups.lid_of(key.second, queue_pair.qpn()));
    if (auto joined = join(wanted); !joined) {
      log(Severity::kWarning,
          fmt::format("{}: queue pair {:#x} hears nothing of the group {} any more: {}", wanted.port->name(),
                      queue_pair.qpn().value(), to_string(key.second), joined.error().message));
      continue;
    }
    leave(membership);
    membership = wanted;
  }
}

bool Runtime::is_attached(Qpn qpn) const {
  const std::lock_guard guard(control_);
  return groups_.load(std::memory_order_relaxed)->is_attached(qpn);
}

// --- the data path

transport::SendResult Runtime::send(std::span<const transport::Outgoing> batch, Instant now) noexcept {
  if (impair_ == nullptr && tap_ == nullptr) return router_->send(batch, now);

  // The tap and the impairment see packets as they stand on the wire, whichever way they go.
  transport::Sender& next = impair_ != nullptr ? static_cast<transport::Sender&>(*impair_) : *router_;
  const Routes& routes = *routes_.load(std::memory_order_acquire);
  transport::SendResult result;
  for (const auto& plain : batch) {
    WireFrame frame;
    InfinibandFrame link_frame;
    const auto& sealed = plain.envelope->is_infiniband()
                             ? link_frame.seal(plain, routes, true)
                             : frame.seal(plain, routes.udp_port_of(plain.envelope->source));
    const auto sent = next.send(std::span(&sealed, 1), now);
    if (sent.taken == 1 && tap_ != nullptr) {
      tap_->write(transport::Direction::kOut, sealed.network_header, sealed.parts, wall_clock_ns());
    }
    result.taken += sent.taken;
    result.full = sent.full;
    if (sent.taken == 0) break;
  }
  if (impair_ != nullptr && impair_->next_timeout() && !helper_.watching()) helper_.wake();
  return result;
}

void Runtime::add_pending(QueuePair& queue_pair) noexcept {
  if (pending_.add(queue_pair) && !helper_.watching()) helper_.wake();
}

void Runtime::arm_timer(QueuePair& queue_pair, Instant at) noexcept {
  if (timers_.arm(queue_pair, at) && !helper_.watching()) helper_.wake();
}

bool Runtime::is_on_this_host(const Port& port, const engine::AddressVector& address) const noexcept {
  if (!settings_.shared_memory) return false;
  const Routes& routes = *routes_.load(std::memory_order_acquire);
  return port.is_infiniband() ? is_lid_here(routes, address.destination_lid) : routes.is_local(address.destination);
}

std::optional<host::ManagementMessage> Runtime::send_management(const host::ManagementMessage& message) noexcept {
  const RcuReadSection section;
  const Routes& routes = *routes_.load(std::memory_order_acquire);
  if (!settings_.shared_memory || !routes.is_local(message.destination)) {
    management_.send(message, now());
    return std::nullopt;
  }
  if (management_.deliver(message) != Management::Delivery::kNobody) return std::nullopt;
  return Management::answer_of_nobody(message);
}

void Runtime::on_empty_poll(std::size_t budget) noexcept {
  // Who waits for another process should let it run: with more pollers than processors nothing else would.
  static thread_local unsigned polls = 0;
  ++polls;
  if (polls % kPollsToYield == 0) sched_yield();
  if (polls % kPollsToNudge == 0 && !timers_.empty()) {
    const RcuReadSection section;
    timers_.nudge_peers();
  }
  helper_.on_empty_poll();
  if (!receiving_.try_lock()) return;
  const bool more = note_left_over(receive(budget, false, false), budget);
  receiving_.unlock();
  run_timers(more);
}

std::size_t Runtime::receive(std::size_t budget, bool all_inlets, bool patient) noexcept {
  const RcuReadSection section;
  inbound_->begin(patient);
  std::size_t count = exchange_->receive(*inbound_, budget);
  const unsigned heat = udp_heat_.load(std::memory_order_relaxed);
  if (!all_inlets && heat == 0 && polls_to_udp_-- != 0) {
    inbound_->follow_up();
    return count;
  }
  polls_to_udp_ = kPollsBetweenUdp;
  std::size_t by_udp = 0;
  for (const auto& [udp_port, receiver] : *inlets_.load(std::memory_order_acquire)) {
    by_udp += udp_port->receive(*receiver, budget);
  }
  bool held_back = false;
  by_udp += raw_ports_.receive(budget, patient, held_back);
  if (held_back) inbound_->hold_back();
  if (by_udp > 0) {
    udp_heat_.store(kUdpHeat, std::memory_order_relaxed);
  } else if (heat > 0) {
    udp_heat_.store(heat - 1, std::memory_order_relaxed);
  }
  inbound_->follow_up();
  return count + by_udp;
}

// Whether there is more to take in. What is overdue may lie there: it is looked for before anything is sent again, but
// not for ever, since others may really be overdue.
bool Runtime::note_left_over(std::size_t received, std::size_t budget) noexcept {
  taken_in_ = received < budget ? 0 : taken_in_ + received;
  return taken_in_ != 0 && taken_in_ < kMostBeforeTimers;
}

void Runtime::run_timers(bool more_to_receive) noexcept {
  if (pending_.empty() && timers_.empty() && delayed_events_.empty() && impair_ == nullptr) return;
  const RcuReadSection section;
  const Instant at = now();
  if (!more_to_receive) timers_.fire(at);
  delayed_events_.fire(at);
  if (impair_ != nullptr) impair_->on_timeout(at);
  if (!pending_.empty()) pending_.retry(at);
}

// --- what the helper thread does

bool Runtime::take_in() noexcept {
  std::size_t count = 0;
  bool more = false;
  {
    const std::lock_guard guard(receiving_);
    count = receive(kHelperBudget, true, true);
    more = note_left_over(count, kHelperBudget);
    held_back_ = inbound_->held_back();
  }
  run_timers(more);
  return count > 0;
}

Duration Runtime::tick() noexcept {
  // A socket holds few packets: while UDP is in use, look after it if the polling thread has lost its processor.
  return udp_heat_.load(std::memory_order_relaxed) > 0 ? kShortTick : kLongTick;
}

void Runtime::relieve() noexcept {
  if (!receiving_.try_lock()) return;
  const bool more = note_left_over(receive(kHelperBudget, true, true), kHelperBudget);
  receiving_.unlock();
  run_timers(more);
}

bool Runtime::arm_doorbells() noexcept {
  const std::lock_guard guard(receiving_);
  return exchange_->arm_doorbells() || held_back_;  // held back: next_timeout() says when to look again
}

void Runtime::disarm_doorbells() noexcept {
  const std::lock_guard guard(receiving_);
  exchange_->disarm_doorbells();
}

std::optional<Instant> Runtime::next_timeout() noexcept {
  // A full ring empties when its reader says so, and nobody tells: look again soon.
  constexpr Duration kRetry{50'000};
  std::optional<Instant> first;
  const auto consider = [&first](std::optional<Instant> due) {
    if (due && (!first || *due < *first)) first = due;
  };
  if (impair_ != nullptr) consider(impair_->next_timeout());
  if (const auto due = reopen_at_.load(std::memory_order_relaxed); due != 0) consider(Instant{due});
  const Instant at = now();
  if (!pending_.empty()) consider(pending_.next_timeout(at).value_or(at + kRetry));
  consider(timers_.next_timeout());
  consider(delayed_events_.next_timeout());
  if (held_back_) consider(at + kRetry);
  return first;
}

void Runtime::serve_control() noexcept {
  exchange_->serve();
  if (netlink_->drain()) {
    const std::lock_guard guard(control_);
    if (auto followed = follow_network(); !followed) log(Severity::kError, followed.error().message);
  }
  if (subnet_watch_ != nullptr && subnet_watch_->drain()) {
    const std::lock_guard guard(control_);
    follow_subnet();
  }
  if (const auto due = reopen_at_.load(std::memory_order_relaxed); due != 0 && due <= now().ns) {
    const std::lock_guard guard(control_);
    reopen_ports();
  }
  fail_overrun_queues();
}

void Runtime::report_overrun(CompletionQueue& queue) noexcept {
  {
    const std::lock_guard guard(overrun_mutex_);
    overrun_.push_back(&queue);
  }
  helper_.wake();
}

void Runtime::delay_event(CompletionQueue& queue, Instant due) noexcept {
  if (delayed_events_.add(queue, due) && !helper_.watching()) helper_.wake();
}

void Runtime::forget(CompletionQueue& queue) noexcept {
  delayed_events_.remove(queue);
  {
    const std::lock_guard guard(overrun_mutex_);
    std::erase(overrun_, &queue);
  }
  const std::lock_guard until_done(failing_mutex_);
}

void Runtime::fail_overrun_queues() noexcept {
  const std::lock_guard until_done(failing_mutex_);
  std::vector<CompletionQueue*> queues;
  {
    const std::lock_guard guard(overrun_mutex_);
    queues.swap(overrun_);
  }
  for (auto* queue : queues) queue->fail_queue_pairs();
}

// --- fork

void Runtime::before_fork() noexcept {
  current_mutex().lock();
  // Nobody is in the middle of changing what the child must close.
  quiesced() = current().lock();
  if (quiesced() != nullptr) quiesced()->control_.lock();
  urcu_bp_before_fork();
}

void Runtime::after_fork_in_parent() noexcept {
  urcu_bp_after_fork_parent();
  if (quiesced() != nullptr) quiesced()->control_.unlock();
  const auto last = std::move(quiesced());
  current_mutex().unlock();
}

void Runtime::after_fork_in_child() noexcept {
  urcu_bp_after_fork_child();
  if (quiesced() != nullptr) {
    quiesced()->abandon();
    quiesced()->control_.unlock();
  }
  const auto last = std::move(quiesced());
  current().reset();
  current_mutex().unlock();
}

void Runtime::abandon() noexcept {
  alive_.store(false, std::memory_order_relaxed);
  helper_.abandon();
  exchange_->abandon();
  counter_memory_->abandon();
  management_.abandon();
  if (tap_ != nullptr) tap_->abandon();
  if (subnet_watch_ != nullptr) subnet_watch_->abandon();
  for (const auto& [port, receiver] : ports_) port->abandon();
  raw_ports_.abandon();
}

}  // namespace verbena::device
