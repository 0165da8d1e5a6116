// Management datagrams from strangers: read, written back, and given to a machine that has connections in every state.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "cm/machine.h"
#include "host/management_message.h"
#include "require.h"
#include "wire/connection_message.h"
#include "wire/ip_service.h"

namespace {

using namespace verbena;
using fuzz::require;

// Each 256 bytes of the input are a message; the first byte of each also says how much time passes.
void speak_to_machine(std::span<const std::byte> input) {
  const cm::Path here{Gid::from_ipv4(1), Gid::from_ipv4(2), 0};
  cm::Machine machine(0x00100000, 0xfffff, 1);
  Instant now{1};
  machine.connect(here, {}, now);
  machine.ask(here, {}, now);
  for (; input.size() >= wire::kMadSize; input = input.subspan(wire::kMadSize)) {
    machine.on_message(here, input.first(wire::kMadSize), now);
    while (const auto event = machine.poll_event()) {
      switch (std::to_integer<unsigned>(input[0]) % 4) {
        case 0:
          machine.reply(event->id, {}, now);
          machine.establish(event->id, now);
          break;
        case 1:
          machine.reject(event->id, cm::Reason::kConsumer, {}, now);
          break;
        case 2:
          machine.disconnect(event->id, now);
          break;
        default:
          machine.release(event->id, now);
          break;
      }
    }
    now = now + std::chrono::milliseconds(std::to_integer<unsigned>(input[255]));
    machine.on_timeout(now);
    while (machine.poll_transmit()) {
    }
  }
  require(machine.size() <= 2 + 64, "a connection for a message at most");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (const auto message = wire::decode_connection_message(bytes)) {
    const auto again = wire::decode_connection_message(wire::encode_connection_message(*message, 0));
    require(again && *again == *message, "what was read is written as it was");
    static_cast<void>(wire::addressee_of(*message));
    static_cast<void>(wire::service_of(*message));
  }
  static_cast<void>(host::decode_management_message(bytes));
  if (size >= wire::IpService::kSize) {
    static_cast<void>(wire::IpService::decode(bytes.first<wire::IpService::kSize>()));
  }
  if (size <= 64 * wire::kMadSize) speak_to_machine(bytes);
  return 0;
}
