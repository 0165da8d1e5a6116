// Follows a device: prints its GID table and port state, and again after each asynchronous event.
//
//     gid_watch
//
// Lines: `gids {"INDEX":"GID",...} port STATE`, and `event NAME PORT` before the table that follows it. Ends with the
// end of its input.
#include <cstdio>
#include <string>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "ud_endpoint.h"

namespace {

void print_table(ibv_context* context) {
  ibv_port_attr port{};
  errno = ibv_query_port(context, 1, &port);
  if (errno != 0) e2e::die("ibv_query_port");
  std::printf("gids {");
  const char* comma = "";
  for (int index = 0; index < port.gid_tbl_len; ++index) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(context, 1, static_cast<std::uint32_t>(index), &entry, 0) != 0) continue;
    char text[INET6_ADDRSTRLEN] = {};
    inet_ntop(AF_INET6, entry.gid.raw, text, sizeof text);
    std::printf("%s\"%d\":\"%s\"", comma, index, text);
    comma = ",";
  }
  std::printf("} port %s\n", ibv_port_state_str(port.state));
  std::fflush(stdout);
}

}  // namespace

int main() {
  e2e::EndpointOptions options;
  options.receives = options.sends = 1;
  e2e::UdEndpoint endpoint(options);
  ibv_context* context = endpoint.context();
  print_table(context);
  while (true) {
    pollfd ready[2] = {{context->async_fd, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    if (poll(ready, 2, -1) < 0) e2e::die("poll");
    if ((ready[0].revents & POLLIN) != 0) {
      ibv_async_event event{};
      if (ibv_get_async_event(context, &event) != 0) e2e::die("ibv_get_async_event");
      std::printf("event %s %d\n", ibv_event_type_str(event.event_type), event.element.port_num);
      ibv_ack_async_event(&event);
      print_table(context);
    }
    char input[64];
    if (ready[1].revents != 0 && read(STDIN_FILENO, input, sizeof input) <= 0) return 0;
  }
}
