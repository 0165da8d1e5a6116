// Opening, importing and closing a device.
#include "verbs/context.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

ibv_context* enlist(ibv_device* device, std::shared_ptr<device::Context> machine, int command_fd) {
  if (command_fd < 0) {
    const std::string& name = machine->device().name();
    return null_with(device::system_error(name + ": no descriptor for the context"));
  }
  auto context = std::make_unique<VerbsContext>();
  context->machine = std::move(machine);
  fill(*context, device, command_fd);
  const std::lock_guard guard(open_contexts().mutex);
  open_contexts().list.push_back(context.get());
  return &context.release()->extended.context;
}

ibv_context* open_ours(ibv_device* device) {
  const auto& record = *reinterpret_cast<VerbsDevice*>(device);
  auto machine = device::Context::open(*record.identity);
  if (!machine)
    return null_with(machine.error().system_errno != 0 ? machine.error().system_errno : EINVAL);  // it is told
  // Programs pass this descriptor around, and one that wanted to talk to the kernel through it learns that it cannot.
  return enlist(device, std::move(*machine), ::memfd_create(kCommandName, MFD_CLOEXEC));
}

bool same_file(int one, int other) noexcept {
  struct stat first {};
  struct stat second {};
  return ::fstat(one, &first) == 0 && ::fstat(other, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

ibv_context* import_ours(int command_fd) {
  ibv_device* device = nullptr;
  std::shared_ptr<device::Context> machine;
  {
    const std::lock_guard guard(open_contexts().mutex);
    for (const VerbsContext* const context : open_contexts().list) {
      if (!same_file(context->extended.context.cmd_fd, command_fd)) continue;
      device = context->extended.context.device;
      machine = context->machine;
    }
  }
  if (machine == nullptr) {
    return null_with(
        Error{ErrorCode::kUnsupported, EOPNOTSUPP,
              "ibv_import_device: the descriptor is of a device that another process has opened. The device "
              "lives in the process that opened it; open it here with ibv_open_device()"});
  }
  if (!machine->alive()) return null_with(device::Context::refuse_child());
  return enlist(device, std::move(machine), ::fcntl(command_fd, F_DUPFD_CLOEXEC, 0));
}

int close_ours(VerbsContext& context) noexcept {
  if (!context.machine->alive()) return device::Context::refuse_child();
  bool last = true;  // of those that were imported from one another
  {
    const std::lock_guard guard(open_contexts().mutex);
    std::erase(open_contexts().list, &context);
    last = std::none_of(open_contexts().list.begin(), open_contexts().list.end(),
                        [&context](const VerbsContext* other) { return other->machine == context.machine; });
  }
  if (last) context.machine->close();
  delete &context;
  return 0;
}

}  // namespace

VerbsContext::~VerbsContext() {
  if (extended.context.device == nullptr) return;
  ::close(extended.context.cmd_fd);
  ::pthread_mutex_destroy(&extended.context.mutex);
}

std::optional<device::PortSnapshot> open_port(const device::Device& device, std::uint8_t number) {
  const std::lock_guard guard(open_contexts().mutex);
  for (const VerbsContext* const context : open_contexts().list) {
    device::Context& machine = *context->machine;
    if (&machine.device() == &device && machine.alive()) return machine.find_port(number)->copy();
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

// Another ibv_context of what is open here. Its descriptor is known by the file behind it, however it came.
VERBENA_EXPORT ibv_context* ibv_import_device(int cmd_fd) {
  if (!is_command_fd(cmd_fd)) return real_import_device.call_or(nullptr, cmd_fd);
  return contained([=] { return import_ours(cmd_fd); });
}

}  // namespace verbena::verbs
