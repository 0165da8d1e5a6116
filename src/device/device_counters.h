// The counters of one device in this process, in the shared page that `verbena drops` reads from outside.
//
// Thread-safety: all calls from any thread.
// Ownership:     points into the page of the runtime.
#pragma once

#include <string_view>
#include <vector>

#include "base/drop.h"
#include "device/object_kind.h"
#include "device/traffic.h"
#include "host/counter_page.h"
#include "transport/datagram.h"

namespace verbena::device {

class DeviceCounters final : public transport::DropCounter {
 public:
  DeviceCounters() = default;
  explicit DeviceCounters(host::CounterBlock block) noexcept : block_(block) {}

  // The rows of a block, in the order in which this class counts: drops, traffic, objects.
  static std::vector<CounterRow> rows();

  void count(Drop drop, std::uint64_t how_many = 1) noexcept override;
  void explain(std::string_view sentence) noexcept override;
  void add(Traffic traffic, std::uint64_t how_many) noexcept;
  void add(ObjectKind kind) noexcept;
  void remove(ObjectKind kind) noexcept;

 private:
  host::CounterBlock block_;
};

}  // namespace verbena::device
