#include "device/subnet_file.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/setting_value.h"

namespace verbena::device {
namespace {

Status read_port_line(const std::string& source, std::istringstream& words, SubnetFile& subnet) {
  SubnetFile::PortLine line{.source = source, .port = {}, .attributes = {}};
  if (!(words >> line.port)) return wrong_part(source, "port", "names no port: write `port verbena0 lid=4`");
  InfinibandPort scratch;
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) return wrong_part(source, word, "is no KEY=VALUE");
    std::string key = word.substr(0, equals);
    std::string value = word.substr(equals + 1);
    if (key == "guid") return wrong_part(source, word, "cannot change: a GUID is the port's own");
    if (auto set = set_attribute(source, key, value, scratch); !set) return set;
    line.attributes.emplace_back(std::move(key), std::move(value));
  }
  subnet.ports.push_back(std::move(line));
  return {};
}

Status read_line(const std::string& source, const std::string& line, SubnetFile& subnet) {
  std::istringstream words(line.substr(0, line.find('#')));
  std::string kind;
  if (!(words >> kind)) return {};
  if (kind == "port") return read_port_line(source, words, subnet);
  if (kind != "lid") return wrong_part(source, kind, "begins no line: there are `lid` and `port`");
  std::string entry;
  std::string more;
  if (!(words >> entry) || words >> more) {
    return wrong_part(source, line, "is no line of a LID: write `lid 8@10.0.0.2`");
  }
  return subnet.lids.add(source, entry);
}

// Nothing for what is no GUID.
std::optional<std::uint64_t> guid_in(const std::string& name) {
  InfinibandPort named;
  return set_attribute("", "guid", name, named) ? std::optional(named.guid) : std::nullopt;
}

bool names(const std::string& name, std::string_view port_name, std::uint64_t guid) {
  return name == port_name || guid_in(name) == guid;
}

// What a line does not reach; empty where it does, or names another host's port.
std::string vain_line(const SubnetFile::PortLine& line, const SubnetPort* port, std::span<const SubnetPort> ports) {
  if (port == nullptr && guid_in(line.port)) return {};
  if (port == nullptr) {
    std::string known;
    for (const SubnetPort& each : ports) known += (known.empty() ? "" : ", ") + each.name;
    return fmt::format("{}: \"{}\" names no port of this process' devices, which are {}: the line changes nothing.",
                       line.source, line.port, known.empty() ? "none" : known);
  }
  if (!port->infiniband) {
    return fmt::format(
        "{}: \"{}\" is an Ethernet port, for which no subnet manager says anything: the line changes "
        "nothing. VERBENA_DEVICES declares InfiniBand ports (link_layer=infiniband).",
        line.source, line.port);
  }
  if (!line.attributes.empty()) return {};
  return fmt::format("{}: the line of \"{}\" has no KEY=VALUE and changes nothing.", line.source, line.port);
}

// A key as it was given for a port before.
struct GivenKey {
  std::string port;
  std::string key;
  std::string value;
  std::string source;
};

void add_second_keys(const SubnetFile::PortLine& line, const std::string& port, std::vector<GivenKey>& given,
                     std::vector<std::string>& words) {
  for (const auto& [key, value] : line.attributes) {
    const auto before = std::find_if(given.begin(), given.end(),
                                     [&, &name = key](const auto& one) { return one.port == port && one.key == name; });
    if (before == given.end()) {
      given.push_back({port, key, value, line.source});
      continue;
    }
    words.push_back(fmt::format("{}: {}={} of \"{}\" comes after {}={} of {}: the later one counts.", line.source, key,
                                value, line.port, key, before->value, before->source));
    *before = {port, key, value, line.source};
  }
}

}  // namespace

Result<SubnetFile> parse_subnet_file(std::string_view path, std::string_view text, const LidMap& lids) {
  SubnetFile subnet{.lids = lids, .ports = {}};
  std::istringstream lines{std::string(text)};
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (auto read = read_line(fmt::format("{}:{}", path, number), line, subnet); !read) {
      return tl::make_unexpected(read.error());
    }
  }
  return subnet;
}

Result<SubnetFile> read_subnet_file(const std::string& path, const LidMap& lids) {
  if (path.empty()) return SubnetFile{.lids = lids, .ports = {}};
  // What is no file may have no end, or keep its reader waiting.
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return failure(ErrorCode::kInvalidArgument,
                   fmt::format("VERBENA_SUBNET: {} is no file, but a folder, a device or a pipe.", path), EINVAL);
  }
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file.is_open() || file.bad()) {
    return failure(ErrorCode::kNotFound, fmt::format("VERBENA_SUBNET: {} cannot be read.", path), ENOENT);
  }
  return parse_subnet_file(path, text, lids);
}

std::vector<std::string> vain_words(const SubnetFile& subnet, std::span<const SubnetPort> ports) {
  std::vector<std::string> words;
  std::vector<GivenKey> given;
  for (const auto& line : subnet.ports) {
    const auto port = std::find_if(ports.begin(), ports.end(),
                                   [&](const SubnetPort& each) { return names(line.port, each.name, each.guid); });
    const bool known = port != ports.end();
    if (auto vain = vain_line(line, known ? &*port : nullptr, ports); !vain.empty()) words.push_back(std::move(vain));
    add_second_keys(line, known ? port->name : line.port, given, words);
  }
  return words;
}

Result<InfinibandPort> configured(const InfinibandPort& declared, std::string_view port_name,
                                  const SubnetFile& subnet) {
  InfinibandPort port = declared;
  std::string source = "VERBENA_DEVICES";
  for (const auto& line : subnet.ports) {
    if (!names(line.port, port_name, declared.guid)) continue;
    for (const auto& [key, value] : line.attributes) {
      if (auto set = set_attribute(line.source, key, value, port); !set) return tl::make_unexpected(set.error());
    }
    source = line.source;
  }
  if (auto checked = check(source, port); !checked) return tl::make_unexpected(checked.error());
  return port;
}

}  // namespace verbena::device
