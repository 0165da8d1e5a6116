// A look-up that hits makes no system call, takes no lock and allocates nothing: counted, not timed.
//
// System calls are counted by a filter of the kernel on the thread that looks up; locks and allocations by functions of
// this program that stand before the C library's.
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <fake_verbs/ah_world.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace verbena::fake {
namespace {

struct Costs {
  std::uint64_t system_calls = 0;
  std::uint64_t locks = 0;
  std::uint64_t allocations = 0;
};

// Of this thread, and only while it counts.
thread_local bool counting = false;
thread_local Costs costs;

// The call has not been made; what it seems to have returned is written here.
void on_system_call(int, siginfo_t*, void* context) {
  if (counting) ++costs.system_calls;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RAX] = -ENOSYS;
}

// From now on a system call of this thread is not made, but told to on_system_call(), and gives an error; except those
// that end a thread and return from a signal.
bool refuse_system_calls() {
  struct sigaction action {};
  action.sa_sigaction = on_system_call;
  action.sa_flags = SA_SIGINFO;
  if (::sigaction(SIGSYS, &action, nullptr) != 0) return false;
  constexpr std::uint32_t kNumber = offsetof(seccomp_data, nr);
  std::array<sock_filter, 6> code{
      {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 3, 0),
       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 2, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  const sock_fprog program{code.size(), code.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// What it costs to run this on a thread of its own.
Costs costs_of(const std::function<void()>& work) {
  Costs counted;
  bool refused = false;
  std::thread worker([&] {
    work();  // what is done once for a thread
    refused = refuse_system_calls();
    costs = {};
    counting = refused;
    if (refused) work();
    counting = false;
    counted = costs;
  });
  worker.join();
  EXPECT_TRUE(refused) << "system calls cannot be counted here";
  return counted;
}

class Hit : public AhWorld {
 protected:
  void expect_free(const std::function<void()>& work) {
    const Costs counted = costs_of(work);
    EXPECT_EQ(0U, counted.system_calls);
    EXPECT_EQ(0U, counted.locks);
    EXPECT_EQ(0U, counted.allocations);
  }
};

void* volatile kept = nullptr;  // or the compiler leaves the allocation out

TEST_F(Hit, IsCountedRightly) {
  std::mutex mutex;
  const Costs counted = costs_of([&mutex] {
    ::syscall(SYS_getppid);
    ::syscall(SYS_getppid);
    const std::lock_guard lock(mutex);
    ::syscall(SYS_getuid);
    kept = std::malloc(8);
    std::free(kept);
  });
  EXPECT_EQ(3U, counted.system_calls);
  EXPECT_EQ(1U, counted.locks);
  EXPECT_EQ(1U, counted.allocations);
}

constexpr std::uint32_t kDestinations = 1000;
constexpr int kRounds = 100'000;

TEST_F(Hit, ByDestinationOrByHandleIsFree) {
  AhDirectory directory = make_directory();
  AhSender sender = std::move(*directory.make_sender());
  std::vector<AhHandle> handles;
  for (std::uint32_t i = 0; i < kDestinations; ++i) handles.push_back(*directory.acquire(to(2 + i), soon()));
  std::uint64_t found = 0;
  expect_free([&] {
    for (int i = 0; i < kRounds; ++i) {
      const auto number = static_cast<std::uint32_t>(i) % kDestinations;
      if (sender.next(to(2 + number)) != nullptr) ++found;
      if (sender.next(handles[number]) != nullptr) ++found;
      sender.completed(2);
    }
  });
  EXPECT_EQ(4U * kRounds, found);
}

TEST_F(Hit, CopyingAndDroppingAHandleIsFree) {
  AhDirectory directory = make_directory();
  const AhHandle handle = *directory.acquire(to(2), soon());
  std::uint64_t copied = 0;
  expect_free([&] {
    for (int i = 0; i < kRounds; ++i) {
      const AhHandle copy = handle;
      if (copy) ++copied;
    }
  });
  EXPECT_EQ(2U * kRounds, copied);
}

TEST_F(Hit, ForAReplyIsFree) {
  AhDirectory directory = make_directory();
  AhSender sender = std::move(*directory.make_sender());
  ibv_wc completion{};
  completion.opcode = IBV_WC_RECV;
  completion.wc_flags = IBV_WC_GRH;
  completion.byte_len = 140;
  std::array<std::byte, 40> grh{};
  constexpr std::array<std::uint8_t, 20> kHeader{0x45, 0, 0,  152, 0, 0, 0x40, 0, 64, 17,
                                                 0,    0, 10, 0,   0, 2, 10,   0, 0,  1};
  for (std::size_t i = 0; i < kHeader.size(); ++i) grh[20 + i] = std::byte{kHeader[i]};
  const Destination reply = *directory.reply_to(completion, grh);
  const AhHandle handle = *directory.acquire(reply, soon());
  ASSERT_TRUE(eventually([&] {
    const bool found = sender.next_reply(completion, grh) != nullptr;
    if (found) sender.completed(1);
    return found;
  }));
  std::uint64_t found = 0;
  expect_free([&] {
    for (int i = 0; i < kRounds; ++i) {
      if (sender.next_reply(completion, grh) != nullptr) ++found;
      sender.completed(1);
    }
  });
  EXPECT_EQ(2U * kRounds, found);
}

// Another thread that is in the middle of a creation, which lasts as long as the device likes, is nothing to a hit.
TEST_F(Hit, WhileTheDeviceIsStuckIsFree) {
  std::atomic<bool> stuck = false;
  std::atomic<bool> go_on = false;
  AhDirectory directory = make_directory();
  AhSender sender = std::move(*directory.make_sender());
  const AhHandle handle = *directory.acquire(to(2), soon());
  set_create_hook([&](const ibv_ah_attr&) {
    stuck = true;
    while (!go_on) std::this_thread::yield();
    return 0;
  });
  const AhTicket other = directory.acquire_async(to(3));
  ASSERT_TRUE(eventually([&] { return stuck.load(); }));
  std::uint64_t found = 0;
  expect_free([&] {
    for (int i = 0; i < kRounds; ++i) {
      if (sender.next(to(2)) != nullptr) ++found;
      sender.completed(1);
    }
  });
  EXPECT_EQ(2U * kRounds, found);
  go_on = true;
  EXPECT_TRUE(other.wait(soon()));
}

}  // namespace

void count_lock() noexcept {
  if (counting) ++costs.locks;
}
void count_allocation() noexcept {
  if (counting) ++costs.allocations;
}

}  // namespace verbena::fake

extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static const auto next = reinterpret_cast<decltype(&pthread_mutex_lock)>(::dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  verbena::fake::count_lock();
  return next(mutex);
}
extern "C" int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  static const auto next =
      reinterpret_cast<decltype(&pthread_rwlock_rdlock)>(::dlsym(RTLD_NEXT, "pthread_rwlock_rdlock"));
  verbena::fake::count_lock();
  return next(lock);
}
extern "C" void* __libc_malloc(std::size_t size);
extern "C" void* malloc(std::size_t size) {
  verbena::fake::count_allocation();
  return __libc_malloc(size);
}
