#include "device/mapped_memory.h"

#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include <unistd.h>

namespace verbena::device {
namespace {

struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool readable = false;
  bool writable = false;
};

// "7f0000000000-7f0000001000 rw-p 00000000 00:00 0"
std::optional<Mapping> parse_mapping(std::string_view line) {
  Mapping mapping;
  const char* const end = line.data() + line.size();
  const auto first = std::from_chars(line.data(), end, mapping.begin, 16);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '-') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, mapping.end, 16);
  if (second.ec != std::errc{} || end - second.ptr < 3 || *second.ptr != ' ') return std::nullopt;
  mapping.readable = second.ptr[1] == 'r';
  mapping.writable = second.ptr[2] == 'w';
  return mapping;
}

}  // namespace

int check_mapped(std::istream& maps, std::uint64_t address, std::uint64_t length, bool writable) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t end = address + length;
  std::uint64_t at = address / page * page;
  if (at == end) return EINVAL;
  std::string line;
  while (at < end && std::getline(maps, line)) {
    const auto mapping = parse_mapping(line);
    if (!mapping || mapping->end <= at) continue;
    if (mapping->begin > at || !mapping->readable || (writable && !mapping->writable)) return EFAULT;
    at = mapping->end;
  }
  return at < end ? EFAULT : 0;
}

int check_mapped(std::uint64_t address, std::uint64_t length, bool writable) {
  std::ifstream maps("/proc/self/maps");
  return maps ? check_mapped(maps, address, length, writable) : 0;
}

}  // namespace verbena::device
