// RDMA devices and their ports, as libibverbs lists them: hardware, kernel rxe, or Verbena's own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <infiniband/verbs.h>

#include "verbena/export.h"
#include "verbena/result.h"
#include "verbena/verbs_object.h"

namespace verbena {

// The devices present when it was read.
//
// Thread-safety: const after read().
// Ownership:     owns the list; a Context opened from it lives on without it.
// Errors:        kUnavailable where libibverbs cannot list devices at all; an empty list is no error.
class VERBENA_API DeviceList : public VerbsOwner<ibv_device*> {
 public:
  static Result<DeviceList> read();

  std::size_t size() const noexcept { return get() != nullptr ? size_ : 0; }
  bool empty() const noexcept { return size() == 0; }
  // Requires: index < size().
  ibv_device* operator[](std::size_t index) const noexcept { return get()[index]; }
  std::vector<std::string> names() const;

 private:
  DeviceList(std::shared_ptr<VerbsObject<ibv_device*>> object, std::size_t size)
      : VerbsOwner(std::move(object)), size_(size) {}

  std::size_t size_ = 0;
};

enum class LinkLayer { kEthernet, kInfiniBand };

// One port, read once.
struct PortView {
  std::uint8_t port = 0;
  LinkLayer link_layer = LinkLayer::kEthernet;
  bool active = false;
  std::string state;             // "active", "down", ...
  std::uint32_t active_mtu = 0;  // bytes of payload in one packet, GRH not counted
  std::uint16_t lid = 0;
  std::uint8_t lmc = 0;  // InfiniBand: the port has 2^lmc LIDs from `lid` on
  std::uint32_t gid_table_length = 0;
  bool grh_required = false;          // each address needs a GRH: always on Ethernet
  std::uint64_t bits_per_second = 0;  // nominal, of all lanes together; 0: not known
};

// An open device.
//
// Thread-safety: const functions, any thread.
// Ownership:     owns the ibv_context; kept open by every object made from it.
// Errors:        kNotFound names the devices there are; kPermission and kUnavailable say what to do. An empty one
//                has no name, and gives kInvalidArgument.
class VERBENA_API Context : public VerbsOwner<ibv_context> {
 public:
  Context() = default;
  // By name ("verbena0", "mlx5_0").
  static Result<Context> open(std::string_view name);
  // The first device that has an active port with a GID (or a LID, on InfiniBand).
  static Result<Context> open_first_usable();

  std::string name() const;
  Result<ibv_device_attr> query_device() const;
  Result<PortView> query_port(std::uint8_t port) const;
  // The first active port. kUnavailable, with the state of each, where none is.
  Result<PortView> first_active_port() const;

 private:
  using VerbsOwner::VerbsOwner;
};

// As the Context's function, for an application that keeps its own ibv_context.
VERBENA_API Result<PortView> query_port(ibv_context* context, std::uint8_t port);

}  // namespace verbena
