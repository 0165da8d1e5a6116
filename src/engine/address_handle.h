// An address handle: a destination that was checked once, with everything a packet to it needs already worked out.
#pragma once

#include <cstdint>

#include "base/envelope.h"
#include "engine/port_view.h"
#include "engine/protection_domain.h"
#include "engine/rate.h"
#include "verbena/gid.h"
#include "verbena/result.h"

namespace verbena::engine {

// As the user gives it (ibv_ah_attr).
struct AddressVector {
  Gid destination;
  std::uint32_t flow_label = 0;  // 20 bits count
  std::uint8_t sgid_index = 0;
  std::uint8_t hop_limit = 0;  // 0: kDefaultHopLimit, as a packet with 0 cannot leave
  std::uint8_t traffic_class = 0;
  bool is_global = false;
  std::uint16_t destination_lid = 0;
  std::uint8_t service_level = 0;
  std::uint8_t source_path_bits = 0;
  std::uint8_t static_rate = 0;  // a code of enum ibv_rate
  std::uint8_t port = 0;

  friend bool operator==(const AddressVector&, const AddressVector&) noexcept = default;
};

inline constexpr std::uint8_t kDefaultHopLimit = 64;

// Immutable. A work request copies what it needs, so the handle may go while requests that named it are queued.
struct AddressHandle {
  const ProtectionDomain* domain = nullptr;
  AddressVector vector;  // as given, the flow label cut to 20 bits
  Envelope envelope;     // source: the GID that stood at sgid_index; source_port: 0 where the queue pair's own counts
  BytePeriod byte_period = 0;  // 0: not paced
};

// Checks `vector` against the port and works the handle out. Refuses, with EINVAL and words that name the value, an
// empty or missing GID index, a zero destination, a wrong port, service level or rate. On RoCE also an address without
// GRH, a GID of another type than RoCEv2 and a destination of another family than the source; on InfiniBand LID 0,
// the permissive LID, a multicast one without GRH, and path bits beyond the port's LMC. Whether LID and GID belong to
// one port is not looked at: no device can know.
Result<AddressHandle> validate(const AddressVector& vector, const PortView& port, const ProtectionDomain* domain);

}  // namespace verbena::engine
