#include "device/flow.h"

#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "device/privilege.h"

namespace verbena::device {
namespace {

Status check_type(const QueuePair& queue_pair) {
  if (queue_pair.type() == QpType::kRawPacket) return {};
  const bool datagrams = queue_pair.type() == QpType::kUd;
  return failure(datagrams ? ErrorCode::kUnsupported : ErrorCode::kInvalidArgument,
                 fmt::format("a flow needs a raw packet queue pair, and {:#x} is of type {}", queue_pair.qpn().value(),
                             name_of(queue_pair.type())),
                 datagrams ? EOPNOTSUPP : EINVAL);
}

// The port of the rule, if the queue pair is, or may still come to be, on it.
Result<Port*> port_for(QueuePair& queue_pair, unsigned number) {
  Context& context = queue_pair.context();
  const auto refuse = [](std::string sentence) {
    return failure(ErrorCode::kInvalidArgument, std::move(sentence), EINVAL);
  };
  Port* const port = context.find_port(number);
  if (port == nullptr) {
    return refuse(fmt::format("a flow on port {}: {} has ports 1 to {}", number, context.device().name(),
                              context.ports().size()));
  }
  if (port->is_infiniband()) {
    return refuse(fmt::format("a flow on {}: it is of InfiniBand, where there are no Ethernet frames", port->name()));
  }
  if (queue_pair.state() != QpState::kReset && port != &queue_pair.port()) {
    return refuse(fmt::format("a flow on port {}: queue pair {:#x} is on port {}", number, queue_pair.qpn().value(),
                              queue_pair.port().number()));
  }
  return port;
}

}  // namespace

Status Flow::check(const QueuePair& queue_pair) {
  if (may_use_raw_network()) return check_type(queue_pair);
  return failure(ErrorCode::kPermission, "a flow needs CAP_NET_RAW", EPERM);
}

Result<std::unique_ptr<Flow>> Flow::create(std::shared_ptr<QueuePair> queue_pair, const engine::FlowRule& rule) {
  if (auto fits = check(*queue_pair); !fits) return tl::make_unexpected(fits.error());
  auto port = port_for(*queue_pair, rule.port);
  if (!port) return tl::make_unexpected(port.error());
  Context& context = queue_pair->context();
  if (auto entered = context.enter(ObjectKind::kFlow); !entered) return tl::make_unexpected(entered.error());
  auto id = context.runtime().raw_ports().add_flow(**port, queue_pair->qpn(), rule);
  if (!id) {
    context.leave(ObjectKind::kFlow);
    return tl::make_unexpected(id.error());
  }
  return std::unique_ptr<Flow>(new Flow(std::move(queue_pair), **port, *id));
}

Flow::Flow(std::shared_ptr<QueuePair> queue_pair, Port& port, std::uint64_t id)
    : queue_pair_(std::move(queue_pair)), port_(port), id_(id), handle_(queue_pair_->context().next_handle()) {}

Flow::~Flow() {
  Context& context = queue_pair_->context();
  context.runtime().raw_ports().remove_flow(port_, id_);
  context.leave(ObjectKind::kFlow);
}

}  // namespace verbena::device
