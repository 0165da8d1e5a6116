#include "rdma/doctor_interfaces.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

#include <fmt/format.h>
#include <linux/dcbnl.h>
#include <linux/ethtool.h>
#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rdma/netlink.h"

namespace verbena::rdma {
namespace {

constexpr int kPriorities = 8;
constexpr std::uint8_t kDscpSelector = 5;  // IEEE_8021QAZ_APP_SEL_DSCP, which older headers lack

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// ioctl() of an interface, which fills a part of `request`.
bool ask_interface(int fd, unsigned long what, const std::string& name, ifreq& request) {
  name.copy(request.ifr_name, IF_NAMESIZE - 1);
  return ::ioctl(fd, what, &request) == 0;
}

std::optional<bool> read_pause(int fd, const std::string& name) {
  ethtool_pauseparam pause{};
  pause.cmd = ETHTOOL_GPAUSEPARAM;
  ifreq request{};
  request.ifr_data = reinterpret_cast<char*>(&pause);  // as the interface wants it
  if (!ask_interface(fd, SIOCETHTOOL, name, request)) return std::nullopt;
  return pause.rx_pause != 0 || pause.tx_pause != 0;
}

std::optional<std::uint8_t> read_ecn(const std::string& name) {
  std::optional<std::uint8_t> priorities;
  for (int i = 0; i < kPriorities; ++i) {
    const std::string text = read_file(fmt::format("/sys/class/net/{}/ecn/roce_np/enable/{}", name, i));
    if (text.empty()) continue;
    priorities = static_cast<std::uint8_t>(priorities.value_or(0) | (text.front() == '1' ? 1U << i : 0U));
  }
  return priorities;
}

LossControl gather_loss_control(int fd, const std::string& name) {
  LossControl loss;
  loss.pause = read_pause(fd, name);
  loss.ecn_priorities = read_ecn(name);
  dcbmsg header{};
  header.cmd = DCB_CMD_IEEE_GET;
  NetlinkRequest request(RTM_GETDCB);
  request.fixed(header).text(DCB_ATTR_IFNAME, name);
  const auto answer = ask_kernel(NETLINK_ROUTE, request, "flow control");
  if (answer && !answer->messages.empty() && answer->messages.front().body.size() >= sizeof header) {
    read_dcb(split_body<dcbmsg>(answer->messages.front().body).second, loss);
  }
  return loss;
}

InterfaceFacts gather_interface(int fd, std::uint32_t index, const char* name) {
  InterfaceFacts facts{.index = index, .name = name};
  ifreq flags{};
  if (ask_interface(fd, SIOCGIFFLAGS, facts.name, flags)) {
    facts.up = (flags.ifr_flags & IFF_UP) != 0;
    facts.carrier = (flags.ifr_flags & IFF_RUNNING) != 0;
    facts.loopback = (flags.ifr_flags & IFF_LOOPBACK) != 0;
  }
  ifreq mtu{};
  if (ask_interface(fd, SIOCGIFMTU, facts.name, mtu)) facts.mtu = static_cast<std::uint32_t>(mtu.ifr_mtu);
  facts.loss = gather_loss_control(fd, facts.name);
  return facts;
}

std::vector<IndexedAddress> gather_ipv4_addresses() {
  ifaddrmsg header{};
  header.ifa_family = AF_INET;
  NetlinkRequest request(RTM_GETADDR, Answers::kAll);
  request.fixed(header);
  std::vector<IndexedAddress> addresses;
  const auto answer = ask_kernel(NETLINK_ROUTE, request, "addresses");
  if (!answer) return addresses;
  for (const NetlinkMessage& message : answer->messages) {
    if (message.type != RTM_NEWADDR) continue;
    if (auto address = read_ipv4_address(message.body)) addresses.push_back(std::move(*address));
  }
  return addresses;
}

void add_addresses(std::vector<InterfaceFacts>& interfaces, const std::vector<IndexedAddress>& addresses) {
  for (const auto& [index, address] : addresses) {
    for (InterfaceFacts& interface : interfaces) {
      if (interface.index == index) interface.addresses.push_back(address);
    }
  }
}

NeighbourFacts::State state_of(std::uint16_t kernel_state) {
  using State = NeighbourFacts::State;
  if ((kernel_state & NUD_PERMANENT) != 0) return State::kPermanent;
  if ((kernel_state & NUD_NOARP) != 0) return State::kNoArp;
  if ((kernel_state & NUD_REACHABLE) != 0) return State::kReachable;
  if ((kernel_state & NUD_STALE) != 0) return State::kStale;
  if ((kernel_state & NUD_DELAY) != 0) return State::kDelay;
  if ((kernel_state & NUD_PROBE) != 0) return State::kProbe;
  if ((kernel_state & NUD_FAILED) != 0) return State::kFailed;
  return (kernel_state & NUD_INCOMPLETE) != 0 ? State::kIncomplete : State::kNone;
}

}  // namespace

std::vector<IndexedAddress> read_inet6_addresses(std::string_view text) {
  std::vector<IndexedAddress> addresses;
  std::istringstream lines{std::string(text)};
  std::string hex;
  std::string name;
  unsigned index = 0;
  unsigned prefix = 0;
  unsigned scope = 0;
  unsigned flags = 0;
  while (lines >> hex >> std::hex >> index >> prefix >> scope >> flags >> name) {
    if (hex.size() != 32 || hex.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) continue;
    InterfaceAddress address;
    for (std::size_t i = 0; i < address.gid.bytes.size(); ++i) {
      address.gid.bytes[i] = static_cast<std::uint8_t>(std::stoul(hex.substr(2 * i, 2), nullptr, 16));
    }
    address.prefix_length = static_cast<std::uint8_t>(prefix);
    address.tentative = (flags & IFA_F_TENTATIVE) != 0;
    address.duplicate = (flags & IFA_F_DADFAILED) != 0;
    addresses.emplace_back(index, address);
  }
  return addresses;
}

void read_dcb(std::span<const std::uint8_t> attributes, LossControl& loss) {
  for_each_attribute(attributes, [&](int type, std::span<const std::uint8_t> ieee) {
    if (type != DCB_ATTR_IEEE) return;
    for_each_attribute(ieee, [&](int inner, std::span<const std::uint8_t> value) {
      if (inner == DCB_ATTR_IEEE_PFC && value.size() >= sizeof(ieee_pfc)) {
        loss.pfc_priorities = number_from<ieee_pfc>(value).pfc_en;
      }
      if (inner != DCB_ATTR_IEEE_APP_TABLE) return;
      for_each_attribute(value, [&](int row, std::span<const std::uint8_t> rule) {
        if (row != DCB_ATTR_IEEE_APP || rule.size() < sizeof(dcb_app)) return;
        const auto app = number_from<dcb_app>(rule);
        if (app.selector == kDscpSelector) loss.dscp_priorities.emplace_back(app.protocol, app.priority);
      });
    });
  });
}

// Of an address the label ("eth0:1") says nothing: the index is that of its interface.
std::optional<IndexedAddress> read_ipv4_address(std::span<const std::uint8_t> body) {
  if (body.size() < sizeof(ifaddrmsg)) return std::nullopt;
  const auto [header, attributes] = split_body<ifaddrmsg>(body);
  InterfaceAddress address{.gid = {}, .prefix_length = header.ifa_prefixlen};
  for_each_attribute(attributes, [&](int type, std::span<const std::uint8_t> value) {
    // Both, where there is another end; then the other is not ours.
    if (type == IFA_LOCAL || (type == IFA_ADDRESS && address.gid.is_zero())) address.gid = gid_from(value);
  });
  if (header.ifa_family != AF_INET || address.gid.is_zero()) return std::nullopt;
  return IndexedAddress{header.ifa_index, address};
}

std::vector<InterfaceFacts> gather_interfaces() {
  std::vector<InterfaceFacts> interfaces;
  const std::unique_ptr<struct if_nameindex, decltype(&::if_freenameindex)> all(::if_nameindex(), &::if_freenameindex);
  if (!all) return interfaces;
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  for (const struct if_nameindex* one = all.get(); one->if_index != 0; ++one) {
    interfaces.push_back(gather_interface(fd, one->if_index, one->if_name));
  }
  if (fd >= 0) ::close(fd);
  add_addresses(interfaces, gather_ipv4_addresses());
  add_addresses(interfaces, read_inet6_addresses(read_file("/proc/self/net/if_inet6")));
  return interfaces;
}

std::optional<NeighbourFacts> read_neighbour(std::span<const std::uint8_t> body) {
  if (body.size() < sizeof(ndmsg)) return std::nullopt;
  const auto header = number_from<ndmsg>(body);
  NeighbourFacts neighbour{.state = state_of(header.ndm_state),
                           .netdev = static_cast<std::uint32_t>(header.ndm_ifindex)};
  bool has_address = false;
  for_each_attribute(body.subspan(NLMSG_ALIGN(sizeof header)), [&](int type, std::span<const std::uint8_t> value) {
    if (type == NDA_DST) {
      neighbour.address = gid_from(value);
      has_address = !neighbour.address.is_zero();
    }
    if (type == NDA_LLADDR && value.size() == MacAddress{}.size()) {
      MacAddress mac{};
      std::copy(value.begin(), value.end(), mac.begin());
      neighbour.mac = mac;
    }
  });
  if (!has_address) return std::nullopt;
  return neighbour;
}

std::vector<NeighbourFacts> gather_neighbours(const Gid& address) {
  ndmsg header{};
  header.ndm_family = address.is_ipv4_mapped() ? AF_INET : AF_INET6;
  NetlinkRequest request(RTM_GETNEIGH, Answers::kAll);
  request.fixed(header);
  std::vector<NeighbourFacts> neighbours;
  const auto answer = ask_kernel(NETLINK_ROUTE, request, "neighbours");
  if (!answer) return neighbours;
  for (const NetlinkMessage& message : answer->messages) {
    const auto neighbour = message.type == RTM_NEWNEIGH ? read_neighbour(message.body) : std::nullopt;
    if (neighbour && neighbour->address == address) neighbours.push_back(*neighbour);
  }
  return neighbours;
}

}  // namespace verbena::rdma
