#include "transport/tap/pcapng.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace verbena::transport::pcapng {
namespace {

constexpr std::uint32_t kSectionHeader = 0x0a0d0d0a;
constexpr std::uint32_t kInterfaceDescription = 1;
constexpr std::uint32_t kEnhancedPacket = 6;
constexpr std::uint32_t kByteOrderMagic = 0x1a2b3c4d;
constexpr std::uint16_t kLinkTypeRaw = 101;
constexpr std::uint16_t kOptionEnd = 0;
constexpr std::uint16_t kOptionInterfaceName = 2;
constexpr std::uint16_t kOptionTimeResolution = 9;
constexpr std::uint16_t kOptionPacketFlags = 2;
constexpr std::uint8_t kNanoseconds = 9;  // 10^-9
constexpr std::string_view kInterfaceName = "verbena";

// Writes numbers and bytes one behind the other. Requires: room.
class Writer {
 public:
  explicit Writer(std::byte* at) noexcept : begin_(at), at_(at) {}

  template <class Number>
  void number(Number value) noexcept {
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
  }
  void bytes(const void* from, std::size_t count) noexcept {
    if (count != 0) std::memcpy(at_, from, count);
    at_ += count;
  }
  void pad() noexcept {
    while (size() % 4 != 0) number(std::uint8_t{0});
  }
  void option(std::uint16_t code, const void* from, std::uint16_t count) noexcept {
    number(code);
    number(count);
    bytes(from, count);
    pad();
  }
  // Closes a block that began at the beginning: its length goes to both ends.
  std::size_t close_block() noexcept {
    const auto length = static_cast<std::uint32_t>(size() + 4);
    number(length);
    std::memcpy(begin_ + 4, &length, sizeof length);
    return length;
  }
  std::size_t size() const noexcept { return static_cast<std::size_t>(at_ - begin_); }

 private:
  std::byte* begin_;
  std::byte* at_;
};

Writer open_block(std::byte* at, std::uint32_t type) noexcept {
  Writer writer(at);
  writer.number(type);
  writer.number(std::uint32_t{0});  // the length, known at the end
  return writer;
}

std::size_t write_section_header(std::byte* at) noexcept {
  auto writer = open_block(at, kSectionHeader);
  writer.number(kByteOrderMagic);
  writer.number(std::uint16_t{1});  // version 1.0
  writer.number(std::uint16_t{0});
  writer.number(std::int64_t{-1});  // the length of the section is not known
  return writer.close_block();
}

std::size_t write_interface(std::byte* at) noexcept {
  auto writer = open_block(at, kInterfaceDescription);
  writer.number(kLinkTypeRaw);
  writer.number(std::uint16_t{0});
  writer.number(std::uint32_t{0});  // no limit to the length of packets
  writer.option(kOptionInterfaceName, kInterfaceName.data(), kInterfaceName.size());
  writer.option(kOptionTimeResolution, &kNanoseconds, 1);
  writer.option(kOptionEnd, nullptr, 0);
  return writer.close_block();
}

}  // namespace

std::vector<std::byte> file_head() {
  std::vector<std::byte> head(128);
  std::size_t size = write_section_header(head.data());
  size += write_interface(head.data() + size);
  head.resize(size);
  return head;
}

std::size_t write_packet(const Packet& packet, std::span<std::byte, kMaxBlock> block) noexcept {
  std::size_t length = packet.head.size();
  for (const auto part : packet.parts) length += part.size();
  const std::size_t captured = std::min(length, kMaxPacket);
  const auto time = static_cast<std::uint64_t>(packet.time_ns);
  auto writer = open_block(block.data(), kEnhancedPacket);
  writer.number(std::uint32_t{0});  // the interface
  writer.number(static_cast<std::uint32_t>(time >> 32));
  writer.number(static_cast<std::uint32_t>(time));
  writer.number(static_cast<std::uint32_t>(captured));
  writer.number(static_cast<std::uint32_t>(length));
  std::size_t room = captured;
  auto put = [&](ConstBytes bytes) {
    const auto here = std::min(room, bytes.size());
    writer.bytes(bytes.data(), here);
    room -= here;
  };
  put(packet.head);
  for (const auto part : packet.parts) put(part);
  writer.pad();
  writer.option(kOptionPacketFlags, &packet.flags, sizeof packet.flags);
  writer.option(kOptionEnd, nullptr, 0);
  return writer.close_block();
}

}  // namespace verbena::transport::pcapng
