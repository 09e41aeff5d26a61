// Stacks of all threads of this process, written by the process itself: on request and on a fatal signal.
//
//     gate::stacks::install("stacks.txt");      once, early; again in a forked child, with the child's file
//     gate::stacks::ThreadGuard guard;          in every thread whose stack overflow is to be seen
//
// On the request signal and on SIGSEGV, SIGABRT, SIGBUS, SIGILL and SIGFPE every thread of /proc/self/task is sent
// a signal, notes its own return addresses, and goes on: system calls restart, a futex wait too. One thread, the
// faulting one or the one that got the request, then writes them all. After a fatal signal the previous handler is
// put back and the signal raised again, so that the wait status shows it.
//
// Neither malloc nor the dynamic loader's lock is used: either may be what the process hangs on. That rules out
// backtrace_symbols_fd and dladdr, which take that lock: whoever reads the text finds the functions in the files.
// (Unwinding itself takes no lock from glibc 2.35 with GCC 12 on, and briefly the loader's before.) Every wait is
// bounded.
//
// The text, appended to whatever else is in the file:
//
//     == gate stacks armed SIGUSR1 pid 71
//     == gate stacks 1 request SIGUSR1 pid 71 tid 71
//     -- thread 71 S 0x00007f0c0f3d2740 worker
//       0 0x00007f0c01c0de29 in /lib/libc10.so+0x6de29
//         <signal handler called>
//       1 0x00007f0c01c0de2a in ?
//         ... 812 frames left out
//     -- thread 72 S 0x0000000000000000 pool: no answer
//     == gate stacks 1 end
//
// and "crash SIGSEGV pid 71 tid 71 address 0x10" in place of "request SIGUSR1 ...". Third in a thread's line is its
// pthread_t, by which Python's faulthandler names threads. Addresses are those of the call instructions; after + stands
// the offset within the image as its symbol table counts.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "stacks/dump.hpp"
#include "stacks/shared.hpp"
#include "stacks/text.hpp"

namespace gate::stacks {
namespace detail {

inline void on_ask(int, siginfo_t*, void*) {
  const int saved = errno;
  const pid_t tid = own_tid();
  for (Slot& slot : shared.slots) {
    int requested = kRequested;
    if (slot.tid == tid && slot.state.compare_exchange_strong(requested, kNoting)) {
      note_stack(slot);
      slot.state.store(kNoted);
      break;
    }
  }
  errno = saved;
}

inline void on_request(int number, siginfo_t*, void*) {
  const int saved = errno;
  pid_t nobody = 0;
  if (shared.busy.compare_exchange_strong(nobody, own_tid())) {
    dump("request", number, 0, 0);
    shared.busy.store(0);
  }
  errno = saved;
}

constexpr std::uintptr_t kUnknownAddress = ~std::uintptr_t(0);

// SI_KERNEL (an address that is none, an instruction that is not allowed) comes without the address.
inline std::uintptr_t fault_address(int number, const siginfo_t* info, const void* context) {
  if (number == SIGABRT) return 0;
  if (info->si_code == SI_KERNEL) return kUnknownAddress;
  if (info->si_code > 0) return reinterpret_cast<std::uintptr_t>(info->si_addr);
#if defined(__x86_64__)
  // Raised again by another handler (faulthandler): the kernel still has the address of the thread's last page fault.
  const auto* registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  if (registers[REG_TRAPNO] == 14) return static_cast<std::uintptr_t>(registers[REG_CR2]);
#endif
  (void)context;
  return kUnknownAddress;
}

inline std::uintptr_t caller_of(const siginfo_t* info, const void* context) {
#if defined(__x86_64__)
  const auto* registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  const auto target = static_cast<std::uintptr_t>(registers[REG_RIP]);
  if (info->si_code > 0 && reinterpret_cast<std::uintptr_t>(info->si_addr) == target) {
    return *reinterpret_cast<const std::uintptr_t*>(registers[REG_RSP]);
  }
#endif
  (void)info;
  (void)context;
  return 0;
}

inline void leave_by(int number, const siginfo_t* info) {
  const auto& before = shared.previous[number];
  const bool default_action =
      !(before.sa_flags & SA_SIGINFO) && (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN);
  struct sigaction fall_back {};
  fall_back.sa_handler = SIG_DFL;
  sigaction(number, default_action ? &fall_back : &shared.previous[number], nullptr);
  shared.previous[number] = fall_back;  // should the signal come here a second time
  if (!default_action && info->si_code > 0) return;  // the instruction faults again, for the previous handler
  syscall(SYS_tgkill, getpid(), own_tid(), number);  // delivered when this handler returns
}

inline void on_fatal(int number, siginfo_t* info, void* context) {
  const pid_t tid = own_tid();
  for (Slot& slot : shared.slots) {
    if (slot.tid == tid && slot.walking.load()) siglongjmp(slot.escape, 1);
  }
  pid_t none = 0;
  if (shared.crashing.compare_exchange_strong(none, tid)) {
    const std::int64_t limit = now_ns() + kOtherCrashNs;
    pid_t writer = 0;
    while (!shared.busy.compare_exchange_strong(writer, tid) && writer != tid && now_ns() < limit) {
      writer = 0;
      nap(1000000);
    }
    shared.length = 0;
    dump("crash", number, fault_address(number, info, context), caller_of(info, context));
  } else if (none != tid) {
    const std::int64_t limit = now_ns() + kOtherCrashNs;  // another thread was first, and ends the process
    while (now_ns() < limit) nap(10000000);
  }
  leave_by(number, info);
}

inline void handle(int number, void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | flags;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, &shared.previous[number]);
}

}  // namespace detail

// Gives this thread a stack for signal handlers, so that the overflow of its own stack can be reported; null where it
// has one already or there is no memory. Python's faulthandler does the same, for the main thread alone.
inline void* take_alternate_stack() {
  stack_t present{};
  if (sigaltstack(nullptr, &present) != 0 || !(present.ss_flags & SS_DISABLE)) return nullptr;
  void* memory =
      mmap(nullptr, detail::kAlternateStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  stack_t wanted{};
  wanted.ss_sp = memory;
  wanted.ss_size = detail::kAlternateStack;
  sigaltstack(&wanted, nullptr);
  return memory;
}

// The same for as long as this object lives, in the thread that made it.
class ThreadGuard {
 public:
  ThreadGuard() : memory_(take_alternate_stack()) {}
  ~ThreadGuard() {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    if (memory_ != nullptr && sigaltstack(&none, nullptr) == 0) munmap(memory_, detail::kAlternateStack);
  }
  ThreadGuard(const ThreadGuard&) = delete;
  ThreadGuard& operator=(const ThreadGuard&) = delete;

 private:
  void* memory_;
};

// Appends dumps to the file ``stacks_path`` from now on: on ``request_signal``, and on fatal signals. The first call
// of a process (or of the parent that forked it) installs the handlers; later ones change the file only. The calling
// thread gets an alternate stack. Returns false where the file cannot be opened; then nothing is installed.
inline bool install(const char* stacks_path, int request_signal = SIGUSR1) {
  using namespace detail;
  int file = open(stacks_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return false;
  const bool first = shared.file < 0;
  if (!first) close(shared.file);
  shared.file = file;
  if (first) {
    shared.slots[0].tid = own_tid();
    note_stack(shared.slots[0]);  // the unwinder loads what it needs now, not in a handler
    shared.slots[0].total = 0;
    take_alternate_stack();
    shared.request = request_signal;
    handle(ask_signal(), on_ask, SA_RESTART);
    handle(request_signal, on_request, SA_RESTART);
    for (int number : kFatal) handle(number, on_fatal, SA_NODEFER);  // for a fault while the stack is walked
  }
  put_all("== gate stacks armed ", signal_name(shared.request), " pid ", getpid(), "\n");
  flush();
  return true;
}

}  // namespace gate::stacks
