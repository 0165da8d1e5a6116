// Answers pings: sends each datagram back to where it came from, through the address-handle directory.
//
// A client is served by the port that has the address which its connection arrived at, else by the first.
//
// One thread. While datagrams come it polls; when none has come for a while it sleeps until a datagram, a client or a
// control message comes, and uses no CPU. The first datagram of a client asks the directory for the address of the
// reply, and waits for it; all later ones find it ready.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/instant.h"
#include "cli/control_channel.h"
#include "cli/descriptor.h"
#include "cli/served_ports.h"
#include "cli/session_hello.h"
#include "cli/spin_budget.h"
#include "cli/ud_endpoint.h"
#include "verbena/ah_handle.h"
#include "verbena/result.h"

namespace verbena::cli {

// Thread-safety: none; one owner at a time.
// Ownership:     owns its ports.
// Errors:        run() ends with what made a port useless. What one client does wrong ends that client's session
//                only.
class PingServer {
 public:
  // `announce` is given one line for each client that comes or goes.
  using Announce = std::function<void(const std::string&)>;

  PingServer(ServedPorts ports, Announce announce);

  // Accepts clients from there.
  void listen(Descriptor listener) { listener_ = std::move(listener); }
  // A client that is connected already.
  void add_client(ControlChannel channel);

  // Serves until a stop signal; with `once` also until the last client, of at least one, has gone.
  Status run(bool once);

  std::uint64_t answered() const noexcept { return answered_; }

 private:
  struct Client {
    ControlChannel channel{};
    UdEndpoint* endpoint = nullptr;
    std::string name{};
    SessionHello hello{};  // as the client sent it; without queue pairs until then
    std::uint64_t answered = 0;
    std::uint64_t unanswered = 0;     // no address, or the send was refused
    std::vector<AhHandle> replies{};  // keeps the addresses of its replies ready
    std::string first_error{};
  };

  void serve_control();
  void accept_clients();
  // False where its session is over.
  bool serve_client(std::uint32_t number, Client& client);
  void begin_session(std::uint32_t number, Client& client, SessionHello hello);
  void end_session(const Client& client, const std::string& why);
  UdEndpoint& endpoint_at(const LocalAddress& address);
  void find_busy_endpoints();
  // How many datagrams there were.
  Result<std::size_t> serve_datagrams();
  void answer(UdEndpoint& endpoint, const Arrival& arrival);
  void answer(Client& client, const Arrival& arrival, std::span<const std::byte> payload);
  static ibv_ah* address_of(Client& client, const Arrival& arrival);
  static bool make_room(UdEndpoint& endpoint, std::size_t queue_pair);
  Status sleep();

  ServedPorts ports_;
  std::vector<UdEndpoint*> busy_;  // those that have a client: the others have nobody to answer
  Announce announce_;
  Descriptor listener_;
  bool listener_rests_ = false;  // no descriptor was left for who waits there
  std::map<std::uint32_t, Client> clients_;
  std::uint32_t next_client_ = 1;
  std::uint64_t answered_ = 0;
  SpinBudget spin_;
};

}  // namespace verbena::cli
