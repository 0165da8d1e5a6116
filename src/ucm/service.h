// The kernel's side of rdma_cm in this process: what stands behind /dev/infiniband/rdma_cm of a program.
//
// A program opens that path, gets a Channel, and writes commands into it (rdma/rdma_user_cm.h). Each is carried out
// within the write. One thread takes in what other processes and hosts say (host/management_name.h), and lets time pass
// for the machine (cm/machine.h); it sleeps while there is nothing.
//
//   program ── write() ──> command() ──┐                 ┌──> Runtime::send_management ──> other process or host
//                                      ├── cm::Machine ──┤
//   socket ──> the thread ─────────────┘                 └──> events ──> Channel ──> program
//
// Thread-safety: the public calls from any thread; everything else under `mutex_`.
// Ownership:     one for a process, never destroyed. Holds the runtime of the devices while a channel is open.
// Errors:        as the kernel's: -1 and errno, and words in the log at level info.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>

#include <sys/types.h>

#include "cm/machine.h"
#include "ucm/channel.h"
#include "ucm/event_kind.h"
#include "ucm/identifier.h"

namespace verbena::ucm {

// A command as it was written: its structure, and how much of an answer the program has room for.
struct Command {
  Channel& channel;
  int fd = -1;  // of the program, that it was written to
  std::span<const std::byte> bytes;
  std::size_t room = 0;
};

class Service {
 public:
  // nullptr where there is no memory.
  static Service* instance() noexcept;

  // What open("/dev/infiniband/rdma_cm") does.
  int open_channel(int flags) noexcept;
  // What write() to a channel does. `inode`: of the descriptor.
  ssize_t command(int fd, std::uint64_t inode, const void* bytes, std::size_t size) noexcept;

  // What the end of the process does to what is connected.
  void hang_up() noexcept;

 private:
  Service() = default;
  static void before_fork() noexcept;
  static void after_fork_in_parent() noexcept;
  static void after_fork_in_child() noexcept;

  struct Membership {
    std::uint32_t identifier = 0;
    std::uint64_t uid = 0;
    std::uint32_t events_reported = 0;
  };
  using Handler = Status (Service::*)(const Command&);
  struct Row;
  static const Row* row_of(std::uint32_t command) noexcept;

  // service.cc
  Status start();
  Status start_thread();  // and what it listens to; leaves what it made where it fails
  void abandon() noexcept;
  ssize_t carry_out(int fd, std::uint64_t inode, std::span<const std::byte> bytes);
  int get_event(int fd, std::uint64_t inode, std::span<const std::byte> bytes, std::size_t room);
  std::shared_ptr<Channel> channel_of(std::uint64_t inode);
  Result<Identifier*> find(const Command& command, std::uint32_t number);
  Identifier* find(std::uint32_t number);
  Identifier& make_identifier(const std::shared_ptr<Channel>& channel);
  void destroy(std::uint32_t number);
  void close_channel(const std::shared_ptr<Channel>& channel);
  void post(Identifier& identifier, const WaitingEvent& event);
  void post(Identifier& identifier, EventKind kind, int status = 0);
  std::uint32_t draw();

  // inbox.cc
  void run() noexcept;
  void wake_in_time();
  Status watch(int fd);
  void take_in(int fd);
  bool is_ours(int fd) const;
  void take_messages(int fd);
  void pump();
  void transmit(const cm::Transmission& transmission);

  // answers.cc
  void on_event(const cm::Event& event);
  void on_request(const cm::Event& event);
  Identifier* find_listener(std::uint64_t service, const SocketAddress& at);
  void on_reply(Identifier& identifier, const wire::ConnectReply& reply);
  void on_service_reply(Identifier& identifier, const wire::ServiceReply& reply);
  void on_rejection(Identifier& identifier, const cm::Event& event);

  // address_commands.cc
  Status create_id(const Command& command);
  Status destroy_id(const Command& command);
  Status bind_ip(const Command& command);
  Status bind(const Command& command);
  Status bind_to(Identifier& identifier, const SocketAddress& address);
  Status claim_port(Identifier& identifier);
  Status resolve_ip(const Command& command);
  Status resolve_address(const Command& command);
  Status resolve(Identifier& identifier, const std::optional<SocketAddress>& source, const SocketAddress& destination);
  Status resolve_route(const Command& command);
  Status set_option(const Command& command);
  Status migrate_id(const Command& command);

  // connection_commands.cc
  Status listen(const Command& command);
  Status connect(const Command& command);
  Status connect_stream(Identifier& identifier, const rdma_ucm_conn_param& parameters);
  Status ask_service(Identifier& identifier, const rdma_ucm_conn_param& parameters);
  Status accept(const Command& command);
  Status reply(Identifier& identifier, const rdma_ucm_conn_param& parameters);
  Status answer_service(Identifier& identifier, const rdma_ucm_conn_param* parameters);
  Status reject(const Command& command);
  Status disconnect(const Command& command);
  Status notify(const Command& command);

  // query_commands.cc
  Status query_route(const Command& command);
  Status query(const Command& command);
  Status init_qp_attributes(const Command& command);

  // multicast_commands.cc
  Status join_ip(const Command& command);
  Status join(const Command& command);
  Status join_group(const Command& command, Identifier& identifier, const SocketAddress& group, std::uint64_t uid,
                    std::uint64_t response);
  Status leave(const Command& command);

  std::mutex mutex_;
  bool started_ = false;
  bool alive_ = true;  // false in a child of fork
  transport::Fd epoll_;
  transport::Fd wake_;
  std::optional<Instant> sleeps_until_;  // nothing: until something arrives
  transport::Fd inbox_;                  // whose name is this process' number
  std::shared_ptr<device::Runtime> runtime_;
  std::optional<cm::Machine> machine_;
  std::uint32_t drawn_ = 0;

  std::unordered_map<std::uint64_t, std::shared_ptr<Channel>> channels_;  // by inode
  std::unordered_map<int, std::uint64_t> channel_ends_;                   // our ends, to inodes
  std::map<std::uint32_t, std::unique_ptr<Identifier>> identifiers_;
  std::unordered_map<cm::ConnectionId, std::uint32_t> by_connection_;
  std::map<std::uint32_t, Membership> memberships_;
  std::uint32_t next_number_ = 1;
};

}  // namespace verbena::ucm
