// Resource limits of this process, as harness/worker/limits.py sets them: before any artifact is touched.
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "values/json.hpp"

namespace gate::limits {

// Time between SIGXCPU, which can be told from everything else, and SIGKILL.
inline constexpr rlim_t kGraceSeconds = 5;
inline constexpr unsigned kSpecAllow = 1u << 2;  // SECCOMP_FILTER_FLAG_SPEC_ALLOW, which old headers do not have
inline constexpr unsigned kIoUringSetup = 425;
inline constexpr unsigned kX32 = 0x40000000;

// Returns why the kernel refuses; empty where it does not. One that was lower before stays.
inline std::string lower(int kind, const json::Value& limit, rlim_t grace = 0) {
  if (limit.is_null()) return "";
  rlimit now{};
  getrlimit(static_cast<__rlimit_resource_t>(kind), &now);
  const rlim_t wanted = static_cast<rlim_t>(limit.as_double());  // RLIM_INFINITY is the largest number
  const rlimit then{std::min(wanted, now.rlim_cur), std::min(wanted + grace, now.rlim_max)};
  return setrlimit(static_cast<__rlimit_resource_t>(kind), &then) == 0 ? "" : std::strerror(errno);
}

inline std::string be_killed_first() {
  std::FILE* file = std::fopen("/proc/self/oom_score_adj", "w");
  if (!file) return std::strerror(errno);
  const bool written = std::fputs("1000", file) >= 0;
  return std::fclose(file) == 0 && written ? "" : std::strerror(errno);
}

#if defined(__x86_64__)
inline constexpr unsigned kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
inline constexpr unsigned kArchitecture = AUDIT_ARCH_AARCH64;
#else
inline constexpr unsigned kArchitecture = 0;
#endif

// Refuses sockets other than local ones, and io_uring, which could open them, to this thread and all that it starts.
inline std::string close_network() {
  if (kArchitecture == 0) return "no filter is known for this architecture";
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 0, 7),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32, 5, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kIoUringSetup, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof *program, program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return std::strerror(errno);
  for (const unsigned flags : {kSpecAllow, 0u})
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter) == 0) return "";
  return std::strerror(errno);
}

// Returns, as JSON, what could not be applied and why; empty where everything was.
inline std::string apply(const json::Value& wanted) {
  signal(SIGXFSZ, SIG_IGN);  // a file that grows too large is an error
  json::Object refused;
  bool any = false;
  const auto note = [&](const char* name, const std::string& why) {
    if (why.empty()) return;
    refused.text(name, why);
    any = true;
  };
  note("memory", lower(RLIMIT_DATA, wanted["memory_bytes"]));
  note("cpu", lower(RLIMIT_CPU, wanted["cpu_s"], kGraceSeconds));
  note("file", lower(RLIMIT_FSIZE, wanted["file_bytes"]));
  note("killed_first", be_killed_first());
  if (!wanted["network"].truthy()) note("network", close_network());
  return any ? refused.str() : "";
}

}  // namespace gate::limits
