// Opens a device, forks, and lets the child try everything on the parent's objects. Each call of the child must be
// refused with an error, none may hang or fall, and the parent must be able to go on: it sends itself a datagram
// before and after.
//
//     fork_child [--gid-index I]
//
// Prints one line for each call of the child, `child CALL: refused|ALLOWED`, then `parent: ok`. Exits 0 where all is as
// it must be.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "ud_endpoint.h"

namespace {

bool report(const char* call, bool refused) {
  std::printf("child %s: %s\n", call, refused ? "refused" : "ALLOWED");
  std::fflush(stdout);
  return refused;
}

bool child_is_refused(e2e::UdEndpoint& endpoint, ibv_ah* handle) {
  bool all = true;
  all &= report("ibv_post_send", endpoint.post_send(0, 64, handle, endpoint.qpn()) != 0);
  ibv_wc completion{};
  all &= report("ibv_poll_cq", ibv_poll_cq(endpoint.cq(), 1, &completion) < 0);
  ibv_recv_wr receive{};
  ibv_recv_wr* bad = nullptr;
  all &= report("ibv_post_recv", ibv_post_recv(endpoint.qp(), &receive, &bad) != 0);
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  all &= report("ibv_modify_qp", ibv_modify_qp(endpoint.qp(), &attributes, IBV_QP_STATE) != 0);
  all &= report("ibv_alloc_pd", ibv_alloc_pd(endpoint.context()) == nullptr);
  all &= report("ibv_create_cq", ibv_create_cq(endpoint.context(), 4, nullptr, nullptr, 0) == nullptr);
  ibv_ah_attr address{};
  all &= report("ibv_create_ah", ibv_create_ah(endpoint.pd(), &address) == nullptr);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = endpoint.cq();
  init.qp_type = IBV_QPT_UD;
  init.cap = {1, 1, 1, 1, 0};
  all &= report("ibv_create_qp", ibv_create_qp(endpoint.pd(), &init) == nullptr);
  char memory[64] = {};
  all &= report("ibv_reg_mr", ibv_reg_mr(endpoint.pd(), memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE) == nullptr);
  return all;
}

// True where a datagram to this queue pair itself arrives whole.
bool reaches_itself(e2e::UdEndpoint& endpoint, ibv_ah* handle, std::uint8_t mark) {
  std::memset(endpoint.send_slot(0), mark, 64);
  if (endpoint.post_send(0, 64, handle, endpoint.qpn()) != 0) return false;
  bool sent = false;
  bool arrived = false;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!(sent && arrived) && std::chrono::steady_clock::now() < limit) {
    ibv_wc completion{};
    if (ibv_poll_cq(endpoint.cq(), 1, &completion) != 1) {
      std::this_thread::yield();
      continue;
    }
    if (completion.status != IBV_WC_SUCCESS) return false;
    if ((completion.wr_id & e2e::UdEndpoint::kSendMark) != 0) {
      sent = true;
    } else {
      arrived = endpoint.received(completion.wr_id)[0] == mark && completion.byte_len == 64 + e2e::kGrhBytes;
    }
  }
  return sent && arrived;
}

}  // namespace

int main(int argc, char** argv) {
  e2e::EndpointOptions options;
  options.receives = 16;
  options.sends = 4;
  if (argc == 3 && std::string(argv[1]) == "--gid-index") options.gid_index = std::atoi(argv[2]);
  e2e::UdEndpoint endpoint(options);
  ibv_ah* handle = endpoint.make_address_handle(endpoint.gid_text());
  if (!reaches_itself(endpoint, handle, 0x5a)) e2e::die("before the fork, nothing came back");

  const pid_t child = fork();
  if (child < 0) e2e::die("fork");
  if (child == 0) _exit(child_is_refused(endpoint, handle) ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  const bool refused = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!refused) std::printf("the child ended with status 0x%x\n", static_cast<unsigned>(status));

  const bool alive = reaches_itself(endpoint, handle, 0xa5);
  std::printf("parent: %s\n", alive ? "ok" : "DEAF");
  ibv_destroy_ah(handle);
  return refused && alive ? 0 : 1;
}
