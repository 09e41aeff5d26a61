// What the dumps of all threads share: memory that is set aside before anything goes wrong, limits, and the clock.
#pragma once

#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gate::stacks::detail {

constexpr int kThreads = 512, kHead = 96, kTail = 64, kModules = 2048, kPaths = 256 * 1024,
              kPrograms = 32;
constexpr long kDeepest = 500000;
constexpr int kFatal[] = {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE};
constexpr std::size_t kAlternateStack = 64 * 1024;
constexpr std::int64_t kAnswerNs = 400000000, kOtherCrashNs = 3000000000;
constexpr std::uintptr_t kInterrupted = std::uintptr_t(1) << 63;  // a mark: the frame below this one is a handler's

enum State : int { kFree, kRequested, kNoting, kNoted, kGivenUp };

struct Slot {
  std::atomic<int> state{kFree};
  pid_t tid = 0;
  std::uintptr_t ident = 0;
  char letter = '?';
  char name[32] = {};
  bool blocks = false;
  long total = 0;
  sigjmp_buf escape;
  std::atomic<bool> walking{false};
  std::uintptr_t head[kHead] = {};
  std::uintptr_t tail[kTail] = {};  // a ring: the outermost frames of a stack that is deeper than kHead
};

struct Module {
  std::uintptr_t begin, end, base, bias;  // base: where the file's first byte is mapped, 0 if it is not
  int path;
};

struct Shared {
  int file = -1;
  int request = 0;
  std::atomic<pid_t> busy{0};  // the thread that writes a dump
  std::atomic<pid_t> crashing{0};
  int dumps = 0;
  struct sigaction previous[NSIG] = {};
  Slot slots[kThreads];
  int used = 0, module_count = 0, path_bytes = 0;
  long not_listed = 0;
  Module modules[kModules];
  char paths[kPaths];
  char text[32 * 1024];
  std::size_t length = 0;
};

inline Shared shared;

inline int ask_signal() { return SIGRTMAX - 4; }
inline pid_t own_tid() { return static_cast<pid_t>(syscall(SYS_gettid)); }

inline std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
}

inline void nap(long ns) {
  timespec length{0, ns};
  nanosleep(&length, nullptr);
}

}  // namespace gate::stacks::detail
