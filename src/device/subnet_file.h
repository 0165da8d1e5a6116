// The file that VERBENA_SUBNET names: what a subnet manager would know and tell the ports.
//
//     # comment
//     lid 8@10.0.0.2
//     lid 16-23@10.0.0.3
//     port verbena0 lid=4 lmc=1 sm_lid=3 sm_sl=2 pkeys=0xffff+0x8001
//     port verbena1/2 lid=5                             port 2 of a device of several
//     port 0200:0000:0400:0001 lid=4                    by port GUID, for a file that several hosts share
//
// A line of a port changes what VERBENA_DEVICES declares for it; all keys but guid.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/infiniband_port.h"
#include "device/lid_map.h"
#include "verbena/result.h"

namespace verbena::device {

struct SubnetFile {
  struct PortLine {
    std::string source;  // "FILE:3", for messages
    std::string port;
    std::vector<std::pair<std::string, std::string>> attributes;
  };
  LidMap lids;
  std::vector<PortLine> ports;
};

// `lids` is what VERBENA_LIDS gave already. kInvalidArgument names the line.
Result<SubnetFile> parse_subnet_file(std::string_view path, std::string_view text, const LidMap& lids);
// kNotFound where it cannot be read; else as above. An empty path: `lids` alone.
Result<SubnetFile> read_subnet_file(const std::string& path, const LidMap& lids);

// `declared` with what the file says of the port of this name ("verbena0", "verbena1/2"). kInvalidArgument where that
// makes no port.
Result<InfinibandPort> configured(const InfinibandPort& declared, std::string_view port_name, const SubnetFile& subnet);

// A port that a line may name.
struct SubnetPort {
  std::string name;
  std::uint64_t guid = 0;
  bool infiniband = false;
};

// What the file says in vain, a sentence each that begins with file and line: a name that is none of `ports`, an
// Ethernet port, a line without a key, a key that a port is given twice, of which the later counts. A GUID that none
// has is another host's port.
std::vector<std::string> vain_words(const SubnetFile& subnet, std::span<const SubnetPort> ports);

}  // namespace verbena::device
