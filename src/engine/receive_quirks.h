// What some devices do with what they receive that the specification does not say. Off, each of them, unless asked
// for.
#pragma once

namespace verbena::engine {

struct ReceiveQuirks {
  bool grh_checksum_zero = false;  // the checksum of the IPv4 header in the GRH is zero
  bool grh_dirty = false;          // an IPv4 header leaves the first 20 bytes of the GRH as they were
  bool wc_sl_unfilled = false;     // the service level does not tell the kind of header

  bool rnr_nak_lost = false;  // no RNR NAK ever arrives

  // Of those that change what stands in front of a datagram.
  bool any() const noexcept { return grh_checksum_zero || grh_dirty || wc_sl_unfilled; }
};

}  // namespace verbena::engine
