// This process and the ones that it forks: whose end it shares.
#pragma once

#include "standard.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire.hpp"
#include "stacks/stacks.hpp"

namespace gate::processes {

// Asks the kernel to kill this process when the thread that started it ends; leaves if that has happened already.
// Whoever runs as the same user may look into this process with a debugger, as far as the kernel allows.
inline void die_with_parent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  if (getppid() == parent) return;
  std::fputs("the parent of this worker is not the process that gave the order\n", stderr);
  _exit(wire::kExitOrphaned);
}

// Returns the number of a process that is forked here, does `work` and leaves; what `work` throws goes up there.
// Its stacks go into a file of its own: several such processes may crash at once.
template <typename Work>
pid_t fork(const std::string& run_dir, Work&& work) {
  const pid_t parent = getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error(std::string("cannot fork: ") + std::strerror(errno));
  if (pid > 0) return pid;
  die_with_parent(parent);
  stacks::install((run_dir + "/" + wire::kStacks + "." + std::to_string(getpid())).c_str());
  work();
  std::fflush(nullptr);
  _exit(wire::kExitStepsDone);
}

// Waits until a forked process has done its work; where it ends before, this one ends by the same signal or code.
inline void join(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) throw std::runtime_error(std::string("cannot wait for a process: ") + std::strerror(errno));
  if (WIFSIGNALED(status)) {
    signal(WTERMSIG(status), SIG_DFL);  // its stacks have been dumped there
    raise(WTERMSIG(status));
  }
  if (WEXITSTATUS(status) != wire::kExitStepsDone) _exit(WEXITSTATUS(status));
}

inline std::atomic<bool> exiting{false};
// How long this process lives on once everything is torn down.
inline unsigned wait_after_teardown_s = 0;

inline void wait_after_teardown(void*) { sleep(wait_after_teardown_s); }

extern "C" int __cxa_atexit(void (*)(void*), void*, void*);

// What is registered first is done last: after the destructors of the shared libraries, which register theirs when they
// are loaded. Only an executable can come before them.
inline void register_wait() { __cxa_atexit(wait_after_teardown, nullptr, nullptr); }
[[gnu::section(".preinit_array"), gnu::used]] static void (*const kBeforeLibraries)() = register_wait;

// Ends the process as a main function does that returns, whatever other threads do. Fatal signals end it at once,
// without a dump: while one is written, this thread would get as far as exit status 0.
//
// `wait_s`: after teardown, so that other threads get a CPU before the process is gone.
[[noreturn]] inline void exit_with_teardown(unsigned wait_s) {
  for (const int number : stacks::detail::kFatal) signal(number, SIG_DFL);
  wait_after_teardown_s = wait_s;
  exiting = true;
  std::exit(0);
}

// Does a server's work in a thread that catches nothing: what is thrown while the process exits, when torch has lost
// its operators say, ends it by SIGABRT.
template <typename Work>
void uncaught_at_exit(Work&& work) {
  try {
    work();
  } catch (...) {
    if (exiting) std::terminate();
    throw;
  }
}

}  // namespace gate::processes
