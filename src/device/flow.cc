#include "device/flow.h"

#include <cerrno>
#include <new>
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
  if (!queue_pair.has_frames_on(*port)) return without_frames(*port);
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
  const Qpn qpn = queue_pair->qpn();
  std::unique_ptr<Flow> made(new (std::nothrow) Flow(std::move(queue_pair), **port));
  if (made == nullptr) {
    context.leave(ObjectKind::kFlow);
    return failure(ErrorCode::kExhausted, "no memory for a flow", ENOMEM);
  }
  auto id = context.runtime().raw_ports().add_flow(**port, qpn, rule);  // may throw; `made` leaves what it entered
  if (!id) return tl::make_unexpected(id.error());
  made->id_ = *id;
  return made;
}

Flow::Flow(std::shared_ptr<QueuePair> queue_pair, Port& port) noexcept
    : queue_pair_(std::move(queue_pair)), port_(port), handle_(queue_pair_->context().next_handle()) {}

Flow::~Flow() {
  Context& context = queue_pair_->context();
  if (id_ != 0) context.runtime().raw_ports().remove_flow(port_, id_);
  context.leave(ObjectKind::kFlow);
}

}  // namespace verbena::device
