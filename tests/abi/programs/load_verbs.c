// Loads verbs the way collective libraries do: by dlopen and dlvsym at fixed versions, never linked with it. Opens each
// device, looks for its address and makes the objects of a connection's set-up.
// Prints one line a device: name, GID index that sysfs calls RoCE v2, and what failed, or "ok".
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef ibv_query_port

#define NEED(name, version)                                                \
  __typeof__(&name) p_##name;                                              \
  *(void**)&p_##name = dlvsym(handle, #name, version); /* as POSIX says */ \
  if (p_##name == NULL) return fail(#name)

static int fail(const char* what) {
  fprintf(stderr, "no %s\n", what);
  return 1;
}

static int first_roce_v2(const char* device) {
  for (int index = 0; index < 16; ++index) {
    char path[256], text[32] = "";
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/1/gid_attrs/types/%d", device, index);
    const int fd = open(path, O_RDONLY);
    if (fd < 0) return -1;
    const ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length < 0 && errno != EINVAL) return -2;
    if (length > 0 && strncmp(text, "RoCE v2", 7) == 0) return index;
  }
  return -3;
}

int main(int count, char** arguments) {
  void* handle = dlopen(count > 1 ? arguments[1] : "libibverbs.so.1", RTLD_NOW);
  if (handle == NULL) return fail(dlerror());
  NEED(ibv_get_device_list, "IBVERBS_1.1");
  NEED(ibv_free_device_list, "IBVERBS_1.1");
  NEED(ibv_get_device_name, "IBVERBS_1.1");
  NEED(ibv_open_device, "IBVERBS_1.1");
  NEED(ibv_close_device, "IBVERBS_1.1");
  NEED(ibv_query_device, "IBVERBS_1.1");
  NEED(ibv_query_port, "IBVERBS_1.1");
  NEED(ibv_query_gid, "IBVERBS_1.1");
  NEED(ibv_alloc_pd, "IBVERBS_1.1");
  NEED(ibv_dealloc_pd, "IBVERBS_1.1");
  NEED(ibv_reg_mr_iova2, "IBVERBS_1.8");
  NEED(ibv_reg_dmabuf_mr, "IBVERBS_1.12");
  NEED(ibv_dereg_mr, "IBVERBS_1.1");
  NEED(ibv_create_cq, "IBVERBS_1.1");
  NEED(ibv_destroy_cq, "IBVERBS_1.1");
  NEED(ibv_event_type_str, "IBVERBS_1.1");
  NEED(ibv_fork_init, "IBVERBS_1.1");

  int devices = 0;
  struct ibv_device** list = p_ibv_get_device_list(&devices);
  if (list == NULL) return fail("devices");
  for (int i = 0; i < devices; ++i) {
    const char* name = p_ibv_get_device_name(list[i]);
    struct ibv_context* context = p_ibv_open_device(list[i]);
    if (context == NULL) return fail("context");
    struct ibv_device_attr attributes;
    struct ibv_port_attr port;
    memset(&port, 0, sizeof port);
    union ibv_gid gid;
    const char* result = "ok";
    if (p_ibv_query_device(context, &attributes) != 0) result = "query_device";
    if (p_ibv_query_port(context, 1, (struct _compat_ibv_port_attr*)&port) != 0) result = "query_port";
    if (port.link_layer != IBV_LINK_LAYER_ETHERNET || port.state != IBV_PORT_ACTIVE) result = "port";
    if (p_ibv_query_gid(context, 1, 0, &gid) != 0) result = "query_gid";
    struct ibv_pd* pd = p_ibv_alloc_pd(context);
    if (pd == NULL) return fail("pd");
    errno = 0;
    if (p_ibv_reg_dmabuf_mr(pd, 0, 4096, 0, -1, 0) != NULL || (errno != EOPNOTSUPP && errno != EPROTONOSUPPORT)) {
      result = "dmabuf probe";
    }
    static char memory[4096];
    struct ibv_mr* mr = p_ibv_reg_mr_iova2(pd, memory, sizeof memory, (uintptr_t)memory,
                                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
    struct ibv_cq* cq = p_ibv_create_cq(context, 16, NULL, NULL, 0);
    if (mr == NULL || cq == NULL) return fail("mr or cq");
    if (p_ibv_destroy_cq(cq) != 0 || p_ibv_dereg_mr(mr) != 0 || p_ibv_dealloc_pd(pd) != 0) result = "destroy";
    if (p_ibv_close_device(context) != 0) result = "close";
    printf("%s %d %s\n", name, first_roce_v2(name), result);
  }
  p_ibv_free_device_list(list);
  return devices == 0;
}
