// What a queue pair is made with and what modify() sets and query() tells: ibv_qp_init_attr and ibv_qp_attr as values.
#pragma once

#include <cstdint>

#include "engine/address_handle.h"
#include "engine/memory_region.h"
#include "engine/qp_state.h"

namespace verbena::engine {

// Of QpAttributes::rate_limit, in kbit/s: as slow as a BytePeriod can say.
inline constexpr std::uint32_t kLeastRateLimit = 2000;

struct QpCapabilities {
  std::uint32_t max_send_wr = 0;
  std::uint32_t max_recv_wr = 0;
  std::uint32_t max_send_sge = 0;
  std::uint32_t max_recv_sge = 0;
  std::uint32_t max_inline_data = 0;

  friend constexpr bool operator==(const QpCapabilities&, const QpCapabilities&) noexcept = default;
};

struct QpAttributes {
  QpState state = QpState::kReset;
  QpState current_state = QpState::kReset;
  std::uint8_t path_mtu = 0;  // enum ibv_mtu: 1 for 256 to 5 for 4096
  std::uint8_t path_migration_state = 0;
  std::uint32_t qkey = 0;
  std::uint32_t receive_psn = 0;
  std::uint32_t send_psn = 0;
  std::uint32_t destination_qpn = 0;
  AccessFlags access = 0;
  QpCapabilities capabilities;  // query() only
  AddressVector address;
  std::uint16_t pkey_index = 0;
  bool sqd_async_notify = false;
  bool send_queue_draining = false;  // query() only
  std::uint8_t max_rd_atomic = 0;
  std::uint8_t max_dest_rd_atomic = 0;
  std::uint8_t min_rnr_timer = 0;
  std::uint8_t port = 0;
  std::uint8_t timeout = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry = 0;
  std::uint32_t rate_limit = 0;  // kbit/s; 0: none. Of raw packet queue pairs
};

}  // namespace verbena::engine
