// Resource limits of this process, as harness/worker/limits.py sets them: before any artifact is touched.
#pragma once

#include "standard.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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

// linux/landlock.h, which old headers do not have; see harness/worker/limits.py.
inline constexpr const char* kLock = ".lock";
inline constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
inline constexpr std::uint64_t kWriteFile = 1u << 1, kRemoveAndMake = 0x1FF0, kRenameElsewhere = 1u << 13,
                               kTruncate = 1u << 14;
inline constexpr long kLeastLandlock = 2, kScopesSince = 6;
inline constexpr std::uint64_t kScopeSignal = 1u << 1;
inline constexpr int kAsksTmpdir[] = {2, 15};
struct __attribute__((packed)) PathBeneath {
  std::uint64_t rights;
  std::int32_t place;
};

inline std::string above(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

inline void allow(int ruleset, const std::string& path, std::uint64_t of_folders, std::uint64_t of_files) {
  const int place = open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (place < 0) return;  // gone since
  struct stat status {};
  fstat(place, &status);
  const PathBeneath rule{S_ISDIR(status.st_mode) ? of_folders : of_files, place};
  if (!S_ISLNK(status.st_mode)) syscall(kAddRule, ruleset, 1, &rule, 0);
  close(place);
}

// Refuses to write elsewhere than below `places`, to this thread and all that it starts; `alone`: also signals to others.
inline std::string write_only_below(const std::vector<std::string>& places, bool alone = false) {
  const long version = syscall(kCreateRuleset, nullptr, 0, 1);
  if (version < 0) return std::strerror(errno);
  if (version < kLeastLandlock) return "this kernel has an old version of Landlock";
  const std::uint64_t of_files = kWriteFile | (version > kLeastLandlock ? kTruncate : 0);
  const std::uint64_t of_folders = of_files | kRemoveAndMake | kRenameElsewhere;
  const std::uint64_t handled[] = {of_folders, 0, kScopeSignal};
  const std::size_t size = alone && version >= kScopesSince ? sizeof handled : sizeof of_folders;
  const int ruleset = static_cast<int>(syscall(kCreateRuleset, handled, size, 0));
  if (ruleset < 0) return std::strerror(errno);
  for (const std::string& path : places) allow(ruleset, path, of_folders, of_files);
  const bool done = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(kRestrictSelf, ruleset, 0) == 0;
  const std::string why = done ? "" : std::strerror(errno);
  close(ruleset);
  return why;
}

inline std::string real(const std::string& folder) {
  char* found = realpath(folder.c_str(), nullptr);
  if (!found) return "";
  const std::string path = found;
  std::free(found);
  return path;
}

// Refuses to write into the folder of the run elsewhere than below `folder`.
inline std::string close_results(const std::string& folder) {
  const std::string own = real(folder);
  if (own.empty()) return std::strerror(errno);
  std::string run = own;
  do run = above(run);
  while (run != "/" && access((run + "/" + kLock).c_str(), F_OK) != 0);
  if (run == "/") return "";
  std::vector<std::string> places{own};
  for (std::string on_the_way = run; on_the_way != "/"; on_the_way = above(on_the_way)) {
    const std::string parent = above(on_the_way);
    DIR* entries = opendir(parent.c_str());
    if (!entries) continue;  // it may not be listed, and is not to be written
    while (const dirent* entry = readdir(entries)) {
      const std::string name = entry->d_name;
      const std::string path = (parent == "/" ? "" : parent) + "/" + name;
      if (name != "." && name != ".." && path != on_the_way) places.push_back(path);
    }
    closedir(entries);
  }
  return write_only_below(places);
}

// Refuses to write elsewhere than below `folder`, see harness/worker/confinement.py; returns why it is not refused.
inline std::string close_elsewhere(const std::string& folder, const json::Value& device, const int (&release)[2]) {
  const std::string own = real(folder);
  if (own.empty()) return std::strerror(errno);
  std::vector<std::string> places{own, "/dev/null", "/dev/zero", "/dev/full", "/dev/tty"};
  if (device.str() != "cpu") places.push_back("/dev");
  const bool asks_tmpdir = !std::lexicographical_compare(release, release + 2, kAsksTmpdir, kAsksTmpdir + 2);
  if (!asks_tmpdir && own.rfind("/tmp/", 0) != 0) places.push_back("/tmp");
  return write_only_below(places, true);
}

// Returns, as JSON, what could not be applied and why; empty where everything was.
inline std::string apply(const json::Value& wanted, const std::string& folder) {
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
  note("results", close_results(folder));
  return any ? refused.str() : "";
}

}  // namespace gate::limits
