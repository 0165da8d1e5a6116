// A flow steering rule of a raw packet queue pair, as long as it exists.
//
// Thread-safety: as a value.
// Ownership:     keeps the queue pair.
#pragma once

#include <cstdint>
#include <memory>

#include "device/queue_pair.h"
#include "engine/flow_rule.h"
#include "verbena/result.h"

namespace verbena::device {

class Flow {
 public:
  // EPERM without CAP_NET_RAW; EOPNOTSUPP for a UD queue pair, EINVAL for any other that is not of raw packets.
  static Status check(const QueuePair& queue_pair);
  // As check(). EINVAL for a port that the device does not have or the queue pair is not on, and for an InfiniBand
  // port; EOPNOTSUPP for one without Ethernet frames, ENODEV for one whose interface is gone; ENOMEM at the limit.
  static Result<std::unique_ptr<Flow>> create(std::shared_ptr<QueuePair> queue_pair, const engine::FlowRule& rule);
  ~Flow();
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  std::uint32_t handle() const noexcept { return handle_; }

 private:
  // Of no rule yet.
  Flow(std::shared_ptr<QueuePair> queue_pair, Port& port) noexcept;

  const std::shared_ptr<QueuePair> queue_pair_;
  Port& port_;
  std::uint64_t id_ = 0;  // 0: none
  const std::uint32_t handle_;
};

}  // namespace verbena::device
