// The ports at which a server answers: one from the start, and others when a client comes in by their address, so that
// who names an address of the second port meets the second port.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/control_channel.h"
#include "cli/ud_endpoint.h"
#include "verbena/result.h"

namespace verbena::cli {

// Thread-safety: none; one owner at a time.
// Ownership:     owns its endpoints; the references it gives hold until it is destroyed, also when it is moved.
// Errors:        open() of the first port, unchanged. A later one that cannot be opened is told on stderr.
class ServedPorts {
 public:
  // `options.port` says which may be taken: of all devices, of one, or a single port.
  static Result<ServedPorts> open(const UdEndpointOptions& options);

  UdEndpoint& first() const noexcept { return *endpoints_.front(); }
  const std::vector<std::unique_ptr<UdEndpoint>>& all() const noexcept { return endpoints_; }

  // The one that has this address, opened now where it has not been; the first where none has it, or has no address. No
  // port is opened twice, whatever clients come by.
  UdEndpoint& at(const LocalAddress& address);

 private:
  explicit ServedPorts(UdEndpointOptions options) : options_(std::move(options)) {}
  UdEndpoint* open_one(const PortName& port);

  UdEndpointOptions options_;
  std::vector<std::unique_ptr<UdEndpoint>> endpoints_;  // never empty
};

// "verbena0/2, queue pair 0x11, GIDs ::ffff:10.0.0.1"; the number only where the device has several ports.
std::string in_words(const UdEndpoint& endpoint);

}  // namespace verbena::cli
