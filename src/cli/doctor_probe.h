// Proves that data moves: a session with a server (verbena doctor --serve, verbena ping --listen), then datagrams of
// two sizes there and back, by the machinery of `verbena ping`.
#pragma once

#include <cstdint>
#include <string>

#include "cli/control_channel.h"
#include "cli/session_hello.h"
#include "rdma/doctor_facts.h"
#include "verbena/deadline.h"
#include "verbena/result.h"

namespace verbena::cli {

// The session, before any datagram.
struct DoctorSession {
  ControlChannel channel{};
  SessionHello hello{};
};

// Errors: kNotFound where the name cannot be resolved, else why nobody answers.
Result<DoctorSession> meet_server(const std::string& host, std::uint16_t port, Deadline deadline);

// The far port as its hello describes it.
rdma::FarPort far_port_of(const SessionHello& hello);

// Sends to the far end as `path` says: its device, destination, hop limit, rate and class. Takes a few seconds where
// nothing comes back.
rdma::ProbeFacts probe(DoctorSession& session, const rdma::PathFacts& path);

}  // namespace verbena::cli
