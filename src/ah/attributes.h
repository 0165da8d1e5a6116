// From a destination to the attributes of an address handle: checks, the choice of the source, and the key.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <infiniband/verbs.h>

#include "ah/ah_key.h"
#include "ah/binding.h"
#include "verbena/destination.h"
#include "verbena/device.h"
#include "verbena/gid_resolver.h"
#include "verbena/result.h"

namespace verbena::ah {

// The port that a directory serves.
struct PortFacts {
  const ibv_pd* domain = nullptr;
  std::uint8_t port = 1;
  LinkLayer link_layer = LinkLayer::kEthernet;
  bool grh_required = true;
};

struct Resolved {
  AhKey key;
  Path path;
  NextHop hop;
};

AhKey key_of(const Destination& destination, const GidEntry& source, const PortFacts& facts);
ibv_ah_attr attributes_of(const Destination& destination, const GidEntry& source, const PortFacts& facts);
NextHop hop_of(const Destination& destination, const Path& path);
// Why this source, in a sentence.
std::string explain(const Destination& destination, const Path& path);

// What to look at where the device finds an attribute invalid (EINVAL). Asks the port for its LMC.
std::string advice_for_refusal(const Destination& destination, const PortFacts& facts, ibv_context* context);

// "grh.hop_limit: 255 asked for, 64 made", for each field that differs.
std::vector<std::string> changes_between(const ibv_ah_attr& wanted, const ibv_ah_attr& made);

// "to 10.0.0.2 (traffic class 8, ...)": only what differs from the defaults.
std::string in_words(const Destination& destination);

// kInvalidArgument, naming the field.
Status validate(const Destination& destination, const PortFacts& facts);

// Requires: validate() was good. Errors: those of choose_source.
Result<Resolved> resolve(const Destination& destination, const PortFacts& facts, std::span<const GidEntry> table,
                         const RouteLookup& routes);

}  // namespace verbena::ah
