// From a QPN to the queue pair of this process that has it.
//
// Thread-safety, Ownership: as NumberTable.
#pragma once

#include "base/qpn.h"
#include "device/number_table.h"

namespace verbena::device {

class QueuePair;

class QpTable : private NumberTable {
 public:
  using NumberTable::add_slot;
  using NumberTable::kFirstIndex;
  using NumberTable::release;
  using NumberTable::reserve;
  using NumberTable::unpublish;

  QueuePair* find(Qpn qpn) const noexcept { return static_cast<QueuePair*>(NumberTable::find(qpn)); }
  void publish(Qpn qpn, QueuePair& queue_pair) noexcept { NumberTable::publish(qpn, &queue_pair); }
};

}  // namespace verbena::device
