#include "wire/ip_service.h"

#include "wire/field_reader.h"
#include "wire/field_writer.h"

namespace verbena::wire {
namespace {

constexpr std::uint8_t kVersion = 0;
constexpr std::size_t kZerosBeforeIpv4 = 12;

Gid read_address(FieldReader& fields, bool ipv4) noexcept {
  if (ipv4) {
    fields.skip(kZerosBeforeIpv4);
    return Gid::from_ipv4(fields.u32());
  }
  Gid gid;
  for (auto& byte : gid.bytes) byte = fields.u8();
  return gid;
}

void write_address(FieldWriter& fields, const Gid& gid, bool ipv4) noexcept {
  if (ipv4) {
    fields.zeros(kZerosBeforeIpv4);
    fields.u32(gid.ipv4());
    return;
  }
  for (const auto byte : gid.bytes) fields.u8(byte);
}

}  // namespace

std::optional<IpService> IpService::decode(std::span<const std::byte, kSize> bytes) noexcept {
  FieldReader fields(bytes.data());
  const std::uint8_t version = fields.u8();
  const unsigned ip_version = fields.u8() >> 4U;
  if (version != kVersion || (ip_version != 4 && ip_version != 6)) return std::nullopt;
  IpService service;
  service.source_port = fields.u16();
  service.source = read_address(fields, ip_version == 4);
  service.destination = read_address(fields, ip_version == 4);
  return service;
}

void IpService::encode(std::span<std::byte, kSize> out) const noexcept {
  FieldWriter fields(out.data());
  const bool ipv4 = destination.is_ipv4_mapped();
  fields.u8(kVersion);
  fields.u8(ipv4 ? 0x40 : 0x60);
  fields.u16(source_port);
  write_address(fields, source, ipv4);
  write_address(fields, destination, ipv4);
}

}  // namespace verbena::wire
