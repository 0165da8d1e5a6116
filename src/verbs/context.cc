// Opening and closing a device, and the exports that hand one process' objects to another, which ours are not made for.
#include "verbs/context.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <string_view>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "verbs/devices.h"
#include "verbs/export.h"
#include "verbs/real.h"
#include "verbs/refusal.h"

namespace verbena::verbs {
namespace {

constinit Real<ibv_context*(ibv_device*)> real_open_device{"ibv_open_device", "IBVERBS_1.1"};
constinit Real<int(ibv_context*)> real_close_device{"ibv_close_device", "IBVERBS_1.1"};
constinit Real<ibv_context*(int)> real_import_device{"ibv_import_device", "IBVERBS_1.10"};
constinit Real<ibv_pd*(ibv_context*, std::uint32_t)> real_import_pd{"ibv_import_pd", "IBVERBS_1.10"};
constinit Real<void(ibv_pd*)> real_unimport_pd{"ibv_unimport_pd", "IBVERBS_1.10"};
constinit Real<ibv_mr*(ibv_pd*, std::uint32_t)> real_import_mr{"ibv_import_mr", "IBVERBS_1.10"};
constinit Real<void(ibv_mr*)> real_unimport_mr{"ibv_unimport_mr", "IBVERBS_1.10"};
constinit Real<ibv_dm*(ibv_context*, std::uint32_t)> real_import_dm{"ibv_import_dm", "IBVERBS_1.13"};
constinit Real<void(ibv_dm*)> real_unimport_dm{"ibv_unimport_dm", "IBVERBS_1.13"};

constexpr const char* kCommandName = "verbena-rnic";

// Stands where the real library keeps what its own calls need; none of them is handed a context of ours.
alignas(16) constinit std::array<std::byte, 4096> no_private_part{};

struct OpenContexts {
  std::mutex mutex;
  std::vector<VerbsContext*> list;  // guarded by mutex
};

OpenContexts& open_contexts() noexcept {
  static OpenContexts& instance = *new OpenContexts;
  return instance;
}

int processor_count() noexcept {
  return static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

void fill(VerbsContext& context, ibv_device* device, int command_fd) noexcept {
  verbs_context& extended = context.extended;
  extended.sz = sizeof extended;
  extended.priv = reinterpret_cast<verbs_ex_private*>(no_private_part.data());
  extended.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  extended.context.device = device;
  extended.context.cmd_fd = command_fd;
  extended.context.async_fd = context.machine->async_events().fd();
  extended.context.num_comp_vectors = processor_count();
  ::pthread_mutex_init(&extended.context.mutex, nullptr);
  set_operations(extended);
}

ibv_context* open_ours(ibv_device* device) {
  const auto& record = *reinterpret_cast<VerbsDevice*>(device);
  auto machine = device::Context::open(*record.identity);
  if (!machine)
    return null_with(machine.error().system_errno != 0 ? machine.error().system_errno : EINVAL);  // it is told
  auto context = std::make_unique<VerbsContext>();
  context->machine = std::move(*machine);
  // Programs pass this descriptor around, and one that wanted to talk to the kernel through it learns that it cannot.
  const int command_fd = ::memfd_create(kCommandName, MFD_CLOEXEC);
  if (command_fd < 0) {
    return null_with(device::system_error(record.identity->name() + ": no descriptor for the context"));
  }
  fill(*context, device, command_fd);
  const std::lock_guard guard(open_contexts().mutex);
  open_contexts().list.push_back(context.get());
  return &context.release()->extended.context;
}

int close_ours(VerbsContext& context) noexcept {
  if (!context.machine->alive()) return device::Context::refuse_child();
  {
    const std::lock_guard guard(open_contexts().mutex);
    std::erase(open_contexts().list, &context);
  }
  context.machine->close();
  delete &context;
  return 0;
}

}  // namespace

VerbsContext::~VerbsContext() {
  if (extended.context.device == nullptr) return;
  ::close(extended.context.cmd_fd);
  ::pthread_mutex_destroy(&extended.context.mutex);
}

std::optional<device::PortSnapshot> open_port(const device::Device& device) {
  const std::lock_guard guard(open_contexts().mutex);
  for (const VerbsContext* const context : open_contexts().list) {
    device::Context& machine = *context->machine;
    if (&machine.device() == &device && machine.alive()) return machine.port().copy();
  }
  return std::nullopt;
}

bool is_command_fd(int fd) noexcept {
  constexpr std::string_view kTarget = "/memfd:verbena-rnic";
  std::array<char, 64> target{};
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  return length > 0 && std::string_view(target.data(), static_cast<std::size_t>(length)).starts_with(kTarget);
}

VERBENA_EXPORT ibv_context* ibv_open_device(ibv_device* device) {
  if (!is_ours(device)) return real_open_device.call_or(nullptr, device);
  return contained([&] { return open_ours(device); });
}

VERBENA_EXPORT int ibv_close_device(ibv_context* context) {
  return is_ours(context) ? close_ours(ours(context)) : real_close_device.call_or(EOPNOTSUPP, context);
}

VERBENA_EXPORT ibv_context* ibv_import_device(int cmd_fd) {
  if (is_command_fd(cmd_fd)) return null_with(EOPNOTSUPP);
  return real_import_device.call_or(nullptr, cmd_fd);
}

VERBENA_EXPORT ibv_pd* ibv_import_pd(ibv_context* context, std::uint32_t handle) {
  return is_ours(context) ? null_with(EOPNOTSUPP) : real_import_pd.call_or(nullptr, context, handle);
}

VERBENA_EXPORT void ibv_unimport_pd(ibv_pd* pd) {
  if (!is_ours(pd)) real_unimport_pd.call(pd);
}

VERBENA_EXPORT ibv_mr* ibv_import_mr(ibv_pd* pd, std::uint32_t handle) {
  return is_ours(pd) ? null_with(EOPNOTSUPP) : real_import_mr.call_or(nullptr, pd, handle);
}

VERBENA_EXPORT void ibv_unimport_mr(ibv_mr* mr) {
  if (!is_ours(mr)) real_unimport_mr.call(mr);
}

VERBENA_EXPORT ibv_dm* ibv_import_dm(ibv_context* context, std::uint32_t handle) {
  return is_ours(context) ? null_with(EOPNOTSUPP) : real_import_dm.call_or(nullptr, context, handle);
}

VERBENA_EXPORT void ibv_unimport_dm(ibv_dm* dm) {
  if (!is_ours(dm)) real_unimport_dm.call(dm);
}

}  // namespace verbena::verbs
