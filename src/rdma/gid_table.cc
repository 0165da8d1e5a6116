#include "verbena/gid_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "rdma/verbs_error.h"

namespace verbena {

namespace {

GidType type_of(std::uint32_t verbs_type) {
  switch (verbs_type) {
    case IBV_GID_TYPE_ROCE_V1:
      return GidType::kRoceV1;
    case IBV_GID_TYPE_ROCE_V2:
      return GidType::kRoceV2;
    default:
      return GidType::kInfiniBand;
  }
}

// How many places all ports have together.
Result<std::size_t> table_length(ibv_context* context) {
  ibv_device_attr device{};
  if (const int code = ibv_query_device(context, &device); code != 0) {
    return rdma::verbs_failure("ibv_query_device", "", rdma::errno_of(code));
  }
  std::size_t length = 0;
  for (unsigned port = 1; port <= device.phys_port_cnt; ++port) {
    ibv_port_attr attributes{};
    if (ibv_query_port(context, static_cast<std::uint8_t>(port), &attributes) == 0 && attributes.gid_tbl_len > 0) {
      length += static_cast<std::size_t>(attributes.gid_tbl_len);
    }
  }
  return std::max<std::size_t>(length, 1);
}

}  // namespace

const char* to_string(GidType type) noexcept {
  switch (type) {
    case GidType::kInfiniBand:
      return "InfiniBand";
    case GidType::kRoceV1:
      return "RoCE v1";
    case GidType::kRoceV2:
      return "RoCE v2";
  }
  return "unknown";
}

Result<std::vector<GidEntry>> read_gid_table(ibv_context* context) {
  if (context == nullptr) return failure(ErrorCode::kInvalidArgument, "a GID table is of an open device");
  const Result<std::size_t> length = table_length(context);
  if (!length) return tl::make_unexpected(length.error());
  std::vector<ibv_gid_entry> raw(*length);
  const ssize_t count = ibv_query_gid_table(context, raw.data(), raw.size(), 0);
  if (count < 0) {
    return rdma::verbs_failure("ibv_query_gid_table", fmt::format("of {}", ibv_get_device_name(context->device)),
                               rdma::errno_of(count));
  }
  std::vector<GidEntry> table;
  for (std::size_t i = 0; i < std::min(static_cast<std::size_t>(count), raw.size()); ++i) {
    GidEntry entry;
    std::memcpy(entry.gid.bytes.data(), raw[i].gid.raw, entry.gid.bytes.size());
    if (entry.gid.is_zero()) continue;
    entry.type = type_of(raw[i].gid_type);
    entry.port = static_cast<std::uint8_t>(raw[i].port_num);
    entry.index = raw[i].gid_index;
    entry.netdev = raw[i].ndev_ifindex;
    table.push_back(entry);
  }
  return table;
}

Result<GidEntries> GidTable::entries() {
  std::unique_lock lock(mutex_);
  if (entries_) return entries_;
  const std::uint64_t generation = generation_;
  lock.unlock();
  Result<std::vector<GidEntry>> table = read_gid_table(context_);
  if (!table) return tl::make_unexpected(table.error());
  GidEntries fresh = std::make_shared<const std::vector<GidEntry>>(std::move(*table));
  lock.lock();
  if (generation == generation_) entries_ = fresh;
  return fresh;
}

void GidTable::invalidate() {
  const std::lock_guard lock(mutex_);
  entries_.reset();
  ++generation_;
}

}  // namespace verbena
