// <infiniband/verbs.h> without the macros that stand in for exported functions, so that these can be defined here;
// and the three exports that the installed headers do not declare.
#pragma once

#include <cstddef>
#include <cstdint>

#include <infiniband/verbs.h>

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

struct ib_uverbs_ah_attr;
struct ib_uverbs_qp_attr;
struct ib_user_path_rec;
struct ibv_sa_path_rec;
struct verbs_sysfs_dev;

namespace verbena::verbs {

// What ibv_query_gid_type() answers with: sysfs' two names, not enum ibv_gid_type.
enum class SysfsGidType : int { kIbOrRoceV1 = 0, kRoceV2 = 1 };

}  // namespace verbena::verbs

extern "C" {
int ibv_query_gid_type(ibv_context* context, std::uint8_t port, unsigned index, verbena::verbs::SysfsGidType* type);
int ibv_read_ibdev_sysfs_file(char* buffer, std::size_t size, verbs_sysfs_dev* sysfs, const char* format, ...)
    __attribute__((format(printf, 4, 5)));
const char* ibv_wr_opcode_str(ibv_wr_opcode opcode);
int ibv_read_sysfs_file(const char* directory, const char* file, char* buffer, std::size_t size);
const char* ibv_get_sysfs_path(void);
}
