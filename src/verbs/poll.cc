// Taking completions. The engine's Completion lies as ibv_wc, so the program's array is filled in place.
#include <algorithm>

#include "device/clock.h"
#include "verbs/objects.h"
#include "verbs/operations.h"

namespace verbena::verbs {
namespace {

using device::Completion;
using Arm = engine::CompletionQueue::Arm;

static_assert(sizeof(Completion) == sizeof(ibv_wc) && alignof(Completion) == alignof(ibv_wc));
static_assert(offsetof(Completion, wr_id) == offsetof(ibv_wc, wr_id));
static_assert(offsetof(Completion, status) == offsetof(ibv_wc, status));
static_assert(offsetof(Completion, opcode) == offsetof(ibv_wc, opcode));
static_assert(offsetof(Completion, vendor_error) == offsetof(ibv_wc, vendor_err));
static_assert(offsetof(Completion, byte_length) == offsetof(ibv_wc, byte_len));
static_assert(offsetof(Completion, immediate) == offsetof(ibv_wc, imm_data));
static_assert(offsetof(Completion, qp_number) == offsetof(ibv_wc, qp_num));
static_assert(offsetof(Completion, source_qp) == offsetof(ibv_wc, src_qp));
static_assert(offsetof(Completion, flags) == offsetof(ibv_wc, wc_flags));
static_assert(offsetof(Completion, pkey_index) == offsetof(ibv_wc, pkey_index));
static_assert(offsetof(Completion, source_lid) == offsetof(ibv_wc, slid));
static_assert(offsetof(Completion, service_level) == offsetof(ibv_wc, sl));
static_assert(offsetof(Completion, dlid_path_bits) == offsetof(ibv_wc, dlid_path_bits));

// The next completion into `current`, from where the read functions tell it. 0, ENOENT for none, or an errno.
int advance(VerbsCq& cq) noexcept {
  const int got = cq.machine->poll_one(cq.current, cq.current_stamp);
  if (got <= 0) return got == 0 ? ENOENT : -got;
  cq.base.wr_id = cq.current.wr_id;
  cq.base.status = static_cast<ibv_wc_status>(cq.current.status);
  return 0;
}

void leave(VerbsCq& cq) noexcept {
  if (!cq.single_threaded) cq.polling.unlock();
}

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attributes) {
  VerbsCq& mine = ours(cq);
  if (attributes != nullptr && attributes->comp_mask != 0) return EINVAL;
  if (!alive(cq->context)) return device::Context::refuse_child();
  if (!mine.single_threaded) mine.polling.lock();
  const int error = advance(mine);
  if (error != 0) leave(mine);  // the program does not end a poll that did not start
  return error;
}

int next_poll(ibv_cq_ex* cq) {
  return advance(ours(cq));
}

void end_poll(ibv_cq_ex* cq) {
  leave(ours(cq));
}

ibv_wc_opcode read_opcode(ibv_cq_ex* cq) {
  return static_cast<ibv_wc_opcode>(ours(cq).current.opcode);
}
std::uint32_t read_vendor_error(ibv_cq_ex* cq) {
  return ours(cq).current.vendor_error;
}
std::uint32_t read_byte_length(ibv_cq_ex* cq) {
  return ours(cq).current.byte_length;
}
__be32 read_immediate(ibv_cq_ex* cq) {
  return ours(cq).current.immediate;
}
std::uint32_t read_qp_number(ibv_cq_ex* cq) {
  return ours(cq).current.qp_number;
}
std::uint32_t read_source_qp(ibv_cq_ex* cq) {
  return ours(cq).current.source_qp;
}
unsigned read_flags(ibv_cq_ex* cq) {
  return ours(cq).current.flags;
}
std::uint32_t read_source_lid(ibv_cq_ex* cq) {
  return ours(cq).current.source_lid;
}
std::uint8_t read_service_level(ibv_cq_ex* cq) {
  return ours(cq).current.service_level;
}
std::uint8_t read_path_bits(ibv_cq_ex* cq) {
  return ours(cq).current.dlid_path_bits;
}

// Ticks of the clock of ibv_query_rt_values_ex().
std::uint64_t read_stamp(ibv_cq_ex* cq) {
  return ours(cq).current_stamp;
}
// By the distance of the two clocks now.
std::uint64_t read_wall_clock(ibv_cq_ex* cq) {
  return ours(cq).current_stamp + static_cast<std::uint64_t>(device::wall_clock_ns() - device::now().ns);
}

}  // namespace

void set_polling(ibv_cq_ex& cq) noexcept {
  cq.start_poll = start_poll;
  cq.next_poll = next_poll;
  cq.end_poll = end_poll;
  cq.read_opcode = read_opcode;
  cq.read_vendor_err = read_vendor_error;
  cq.read_byte_len = read_byte_length;
  cq.read_imm_data = read_immediate;
  cq.read_qp_num = read_qp_number;
  cq.read_src_qp = read_source_qp;
  cq.read_wc_flags = read_flags;
  cq.read_slid = read_source_lid;
  cq.read_sl = read_service_level;
  cq.read_dlid_path_bits = read_path_bits;
  cq.read_completion_ts = read_stamp;
  cq.read_completion_wallclock_ns = read_wall_clock;
}

int poll_cq(ibv_cq* cq, int count, ibv_wc* completions) noexcept {
  VerbsCq& mine = ours(cq);
  if (count <= 0) return 0;
  if (!mine.machine->context().alive()) return -device::Context::refuse_child();
  return mine.machine->poll({reinterpret_cast<Completion*>(completions), static_cast<std::size_t>(count)});
}

int request_notification(ibv_cq* cq, int solicited_only) noexcept {
  if (!alive(cq->context)) return device::Context::refuse_child();
  ours(cq).machine->arm(solicited_only != 0 ? Arm::kSolicited : Arm::kAny);
  return 0;
}

}  // namespace verbena::verbs
