// What kinds of send requests there are, as a table: what each is on the wire, what it completes as, and what it needs.
#pragma once

#include <cstdint>
#include <span>

#include "engine/completion.h"
#include "engine/qp_state.h"
#include "engine/send_request.h"
#include "wire/opcode.h"

namespace verbena::engine {

struct RequestKind {
  SendOpcode opcode{};
  wire::Operation operation{};  // on the wire; means nothing where `local`
  WcOpcode completion{};
  bool local = false;           // takes no packet
  bool needs_response = false;  // done only by an answer of its own, of which only so many may be open
  bool reads_locally = false;   // its SGEs are filled by the answer
  bool has_immediate = false;
  bool has_invalidate = false;
  bool on_unreliable = false;  // UC has it too

  // Whether it takes a receive at the other end.
  constexpr bool takes_receive() const noexcept {
    return !local && (operation == wire::Operation::kSend || has_immediate);
  }
};

// The row of an opcode that verbs defines; nullptr for any other number, and for what no connection has.
const RequestKind* kind_of(SendOpcode opcode) noexcept;

// Whether a queue pair of this type takes requests of this kind.
bool takes(QpType type, SendOpcode opcode) noexcept;

// The opcode of the packet of an operation at a place of its message.
wire::Opcode wire_opcode(wire::Transport transport, const RequestKind& kind, wire::Place place) noexcept;

}  // namespace verbena::engine
