// From an SRQN, as XRC packets carry it, to the shared receive queue of this process that has it. SRQNs lie in the
// first slot of the process, so an SRQN names its process as a QPN does. Most programs have none: the table takes its
// memory at the first.
//
// Thread-safety: find() from any thread inside an RCU read section; the rest any thread.
// Ownership:     as NumberTable.
#pragma once

#include <mutex>

#include "base/qpn.h"
#include "device/number_table.h"
#include "verbena/result.h"

namespace verbena::device {

class SharedReceiveQueue;

class SrqTable : private NumberTable {
 public:
  using NumberTable::release;
  using NumberTable::unpublish;

  // Called once, before anything else.
  void set_slot(Slot slot) noexcept { slot_ = slot; }
  // kExhausted with ENOMEM where no number is free.
  Result<Qpn> reserve();
  void publish(Qpn srqn, SharedReceiveQueue& queue) noexcept { NumberTable::publish(srqn, &queue); }
  SharedReceiveQueue* find(Qpn srqn) const noexcept {
    return static_cast<SharedReceiveQueue*>(NumberTable::find(srqn));
  }

 private:
  Slot slot_;
  std::mutex first_;  // held while the slot is added
};

}  // namespace verbena::device
